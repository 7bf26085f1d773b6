#!/usr/bin/env python3
"""Writes orders.csv: 3000 orders on a few hot and many cold articles.

The same file on every run: `python3 examples/data/make_orders.py`.
"""

from pathlib import Path
from random import Random

HOT, COLD = 6, 194
ORDERS = 3000
HOT_SHARE = 0.45
RESTOCK_SHARE = 0.12


def draws(seed):
    """Numbers below a bound; `random()` alone keeps its sequence across Python versions."""
    source = Random(seed)
    return lambda bound: int(source.random() * bound)


def main():
    below = draws(20240229)
    hot = [f"H{number:02}" for number in range(1, HOT + 1)]
    cold = [f"C{number:03}" for number in range(1, COLD + 1)]
    # Every article is delivered once before it is sold.
    rows = [(article, "restock", 20 + below(21)) for article in hot + cold]
    while len(rows) < ORDERS:
        shelf = hot if below(1000) < HOT_SHARE * 1000 else cold
        article = shelf[below(len(shelf))]
        if below(1000) < RESTOCK_SHARE * 1000:
            rows.append((article, "restock", 10 + below(11)))
        else:
            rows.append((article, "sale", 1 + below(4)))
    lines = [f"{order},{article},{kind},{pieces}" for order, (article, kind, pieces) in enumerate(rows, 1)]
    text = "\n".join(["order,article,kind,pieces", *lines, ""])
    Path(__file__).with_name("orders.csv").write_text(text, encoding="ascii", newline="\n")


if __name__ == "__main__":
    main()
