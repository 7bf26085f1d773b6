#!/usr/bin/env python3
"""Draws the pictures of the README from what was seen.

    scripts/pictures.py            draws them anew
    scripts/pictures.py --check    fails if one of them is not what its record says

The records are in docs/pictures: story.txt is the output of

    cargo run --example order_pipeline

and hand-overs.json has the lines of JSON of

    scripts/bench-peers.sh --modes 4x8-hold0-pause0 --seconds 3 --rounds 3 --jvm-warmup 20 | grep '^{'

In the documentation of the crate there are no files beside a page: src/guide/pictures.md has the pictures as addresses.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/pictures"

INK, FAINT, GOOD, LATE, BAR, SHADE = "#1f2328", "#656d76", "#1a7f37", "#b35900", "#0969da", "#d8dee4"

# How the README names the subjects of the bench.
PEERS = {
    "leasehold": "Leasehold",
    "rslock": "rslock 0.10, retry 0–4 ms",
    "rslock-default": "rslock 0.10, default",
    "redisson-rlock": "Redisson 4.7 RLock",
    "redisson-fair": "Redisson 4.7 RFairLock",
    "redsync": "redsync 4.18, retry 2 ms",
    "redsync-default": "redsync 4.18, default",
    "rueidislock": "rueidislock 1.0",
    "redis-semaphore": "redis-semaphore 5.8, retry 2 ms",
    "redis-semaphore-default": "redis-semaphore 5.8, default",
}


class Picture:
    """An SVG that is readable on a light and on a dark page: it brings its own ground."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" font-family="-apple-system,Segoe UI,Helvetica,Arial,sans-serif" font-size="13">'
            f"<title>{escape(title)}</title>"
            f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" fill="#fff" stroke="{SHADE}"/>'
        )
        self.parts: list[str] = []

    def text(self, x: float, y: float, words: str, *, ink: str = INK, anchor: str = "start", size: int = 13, bold: bool = False) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{ink}" text-anchor="{anchor}" font-size="{size}"{weight}>{escape(words)}</text>'
        )

    def box(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3" fill="{fill}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, ink: str, *, dashes: str = "", width: float = 1.5) -> None:
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{ink}" stroke-width="{width}"{dashed}/>'
        )

    def arrow(self, x: float, y1: float, y2: float, ink: str) -> None:
        self.line(x, y1, x, y2 - 6, ink, width=2)
        self.parts.append(f'<path d="M{x - 5:.1f} {y2 - 8:.1f}h10l-5 8z" fill="{ink}"/>')

    def done(self) -> str:
        return self.head + "".join(self.parts) + "</svg>\n"


# The story ------------------------------------------------------------------------------------------------------


def story(report: str) -> str:
    """Time goes to the right: who believes in the lock, and what reaches the storage."""
    told = [(float(at), words) for at, words in re.findall(r"^ +(\d+\.\d\d) s  (.*)$", report, re.MULTILINE)]
    beginnings = ["worker A takes", "the lease of A is over", "worker B takes over", "A goes on", "the storage refuses"]
    # Where B had to take over several times, the last one counts.
    taken, over, takes_over, late, refused = [max(at for at, words in told if words.startswith(b)) for b in beginnings]
    fences = [re.search(r"fence (\d+)", words) for _, words in told]
    old, new = fences[0].group(1), fences[-1].group(1)
    name = re.search(r"lock of (\w+)", told[0][1]).group(1)

    width, left, right = 760, 96, 726
    at = lambda time: left + (right - left) * time / (refused + 0.12)
    short = lambda fence: "…" + fence[-7:]
    picture = Picture(width, 236, f"The lock of {name}: A stalls, B takes over, and the storage refuses the late write of A")
    row_a, row_b, row_s = 54, 116, 174
    for row, words in [(row_a, "worker A"), (row_b, "worker B"), (row_s, "storage")]:
        picture.text(18, row + 5, words, bold=True)
        picture.line(left, row, right, row, SHADE, width=1)

    picture.box(at(taken), row_a - 13, at(over) - at(taken), 26, BAR)
    picture.text(at(taken), row_a + 29, f"has the lock, fence {short(old)}", ink=BAR)
    picture.line(at(over), row_a, at(late), row_a, LATE, dashes="5 4", width=2)
    picture.text((at(over) + at(late)) / 2, row_a - 20, "stalls; its lease is over, and A does not look", ink=LATE, anchor="middle")
    picture.text(at(late), row_a - 20, "writes", ink=LATE, anchor="middle")

    picture.box(at(takes_over), row_b - 13, at(late) - at(takes_over), 26, GOOD)
    picture.text((at(takes_over) + at(late)) / 2, row_b + 5, f"has the lock, fence {short(new)}", ink="#fff", anchor="middle")

    picture.arrow(at(takes_over) + 8, row_b + 13, row_s - 6, GOOD)
    picture.text(at(takes_over) + 18, row_s + 22, f"has seen {short(new)}", ink=GOOD)
    picture.arrow(at(late), row_a + 8, row_s - 6, LATE)
    picture.text(at(late) + 20, row_s + 22, f"refused: {short(old)} is older", ink=LATE, anchor="end", bold=True)
    for time in (taken, over, late):
        picture.line(at(time), 208, at(time), 212, FAINT, width=1)
        picture.text(at(time), 226, f"{time:.2f} s", ink=FAINT, anchor="middle", size=11)
    return picture.done()


# Hand-overs -----------------------------------------------------------------------------------------------------


def hand_overs(record: str) -> str:
    """A bar for each library, as long as its median is great."""
    lines = [json.loads(line) for line in record.splitlines()]
    medians = {line["row"].split("/")[-1]: line["value"] for line in lines}
    rows = [(name, medians[peer]) for peer, name in PEERS.items() if peer in medians]
    rows.sort(key=lambda row: -row[1])
    left, right, step = 232, 640, 26
    picture = Picture(760, 46 + step * len(rows), "Hand-overs of one contended lock per second")
    picture.text(18, 26, "hand-overs of one contended lock, per second", ink=FAINT, size=12)
    for place, (name, value) in enumerate(rows):
        y = 40 + step * place
        ours = name == "Leasehold"
        picture.text(left - 10, y + 14, name, anchor="end", bold=ours)
        picture.box(left, y + 1, max((right - left) * value / rows[0][1], 1.5), 18, BAR if ours else "#8c959f")
        picture.text(left + (right - left) * value / rows[0][1] + 8, y + 14, f"{value:,.0f}", bold=ours)
    return picture.done()


# All ------------------------------------------------------------------------------------------------------------


def drawn() -> dict[Path, str]:
    pictures = {
        "hand-overs": hand_overs((FOLDER / "hand-overs.json").read_text()),
        "story": story((FOLDER / "story.txt").read_text()),
    }
    files = {FOLDER / f"{name}.svg": svg for name, svg in pictures.items()}
    address = lambda svg: "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    files[ROOT / "src/guide/pictures.md"] = "".join(f"[picture-{name}]: {address(svg)}\n" for name, svg in pictures.items())
    return files


def main() -> None:
    for path, text in drawn().items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path.relative_to(ROOT)} is not what its record says; draw it anew with scripts/pictures.py")


if __name__ == "__main__":
    main()
