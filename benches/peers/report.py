"""Tables for people, then lines of JSON for machines."""

from __future__ import annotations

import itertools
import json
import statistics

from measures import Round
from subjects import PEERS, Mode, Peer

REFERENCE = "leasehold"

COLUMNS = [
    ("acquired/s", "acquired", "{:,.0f}"),
    ("handed/s", "handed", "{:,.0f}"),
    ("p50 ms", "wait_p50_us", "ms"),
    ("p99 ms", "wait_p99_us", "ms"),
    ("cmd/acq", "commands_per_acquisition", "{:.3g}"),
    ("cmd/hand", "commands_per_hand_over", "{:.3g}"),
    ("CPU µs", "cpu_us_per_hand_over", "{:.3g}"),
    ("least/most", "least_most", "{:.2f}"),
    ("held", "held", "{:.2f}"),
]

LEGEND = """\
Medians of shuffled rounds. acquired/s: acquisitions per second, with the least and most of the rounds. handed/s: those
by another worker than the one before. ×acquired, ×handed: Leasehold's rate divided by this one's, median of the rounds'
ratios. p50, p99: waits that ended. cmd/acq, cmd/hand: commands that clients sent, per acquisition and per hand-over.
CPU: of all client processes, per hand-over. least/most: served worker. held: share of the time the lock was held."""


class Report:
    """All rounds, and what went wrong."""

    def __init__(self) -> None:
        self.rounds: dict[tuple[Mode, str], dict[int, Round]] = {}
        self.failures: list[str] = []
        self.notes: list[str] = []

    def add(self, mode: Mode, peer: Peer, number: int, result: Round) -> None:
        self.rounds.setdefault((mode, peer.name), {})[number] = result
        if result.stuck:
            where = f"round {number + 1}, {mode.name}, {peer.name}"
            self.notes.append(f"{where}: {result.stuck} workers still waited 5 s after all others had stopped")

    def median(self, mode: Mode, peer: str, column: str) -> float | None:
        values = [result.value(column) for result in self.rounds[mode, peer].values()]
        return None if None in values else statistics.median(values)

    def ratio(self, mode: Mode, peer: str, column: str) -> float | None:
        reference, mine = self.rounds.get((mode, REFERENCE), {}), self.rounds[mode, peer]
        pairs = [(reference[n].value(column), mine[n].value(column)) for n in reference.keys() & mine.keys()]
        ratios = [over / under for over, under in pairs if over is not None and under]
        return statistics.median(ratios) if ratios else None

    def print(self, modes: list[Mode], missing: dict[str, str]) -> None:
        rows = [(m, p.name) for m in modes for p in PEERS if (m, p.name) in self.rounds]
        print(f"\n{LEGEND}")
        for mode, group in itertools.groupby(rows, lambda row: row[0]):
            self.print_table(mode, [peer for _, peer in group])
        print()
        for name, reason in missing.items():
            print(f"not run: {name}: {reason}")
        for note in self.notes:
            print(f"note: {note}")
        for failure in self.failures:
            print(f"FAILED: {failure}")
        print()
        for mode, peer in rows:
            print(json.dumps(self.row(mode, peer)))

    def print_table(self, mode: Mode, peers: list[str]) -> None:
        print(f"\n{mode.name}: {mode.processes} × {mode.workers} workers, ", end="")
        names = "a lock each" if mode.own_names else "one lock"
        print(f"{names}, {mode.hold_ms} ms hold, {mode.pause_ms} ms pause\n")
        rate, handed, *others = [head for head, _, _ in COLUMNS]
        print(line("", rate, handed, "×acquired", "×handed", *others))
        for peer in peers:
            rate, handed, *others = [shown(self.median(mode, peer, column), form) for _, column, form in COLUMNS]
            rates = [result.acquired for result in self.rounds[mode, peer].values()]
            ratios = [shown(self.ratio(mode, peer, column), "{:.2f}") for column in ("acquired", "handed")]
            print(line(peer, f"{rate} ({min(rates):.0f}..{max(rates):.0f})", handed, *ratios, *others))

    def row(self, mode: Mode, peer: str) -> dict:
        rates = [result.value("handed") for result in self.rounds[mode, peer].values()]
        row = {
            "bench": "contention_peers",
            "row": f"hand_overs_per_second/{mode.name}/{peer}",
            "value": rounded(self.median(mode, peer, "handed")),
            "ratio": rounded(self.ratio(mode, peer, "handed")),
            "spread": None if None in rates else [rounded(min(rates)), rounded(max(rates))],
            "acquired_ratio": rounded(self.ratio(mode, peer, "acquired")),
            "hold_us": rounded(self.median(mode, peer, "hold_us")),
        }
        others = [column for _, column, _ in COLUMNS if column != "handed"]
        return row | {column: rounded(self.median(mode, peer, column)) for column in others}


def line(peer: str, rate: str, *cells: str) -> str:
    return f"{peer:<24}{rate:>30}" + "".join(f"{cell:>11}" for cell in cells)


def shown(value: float | None, form: str) -> str:
    if value is None:
        return "–"
    return f"{value / 1000:.3g}" if form == "ms" else form.format(value)


def rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")
