"""What the processes of one run printed, put together."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from subjects import Peer


@dataclass
class Round:
    """What one run of a subject in a mode came to."""

    acquired: float
    handed: float | None
    commands: float
    cpu_us: float
    wait_p50_us: float
    wait_p99_us: float
    least_most: float
    hold_us: float
    stuck: int

    def value(self, column: str) -> float | None:
        per_hand_over = {"commands_per_hand_over": self.commands, "cpu_us_per_hand_over": self.cpu_us}
        if column in per_hand_over:
            return per_hand_over[column] / self.handed if self.handed else None
        if column == "commands_per_acquisition":
            return self.commands / self.acquired if self.acquired else None
        if column == "held":
            return self.acquired * self.hold_us / 1e6
        return getattr(self, column)


def merged(peer: Peer, results: list[dict], commands: float, seconds: int) -> Round:
    served = [count for result in results for count in result["acquired"]]
    acquired = sum(served)
    handed = acquired if peer.floor_shape else hand_overs(results)
    held = sum(result["hold_us_mean"] * sum(result["acquired"]) for result in results)
    p50, p99 = percentiles(results, [0.5, 0.99])
    return Round(
        acquired=acquired / seconds,
        handed=None if handed is None else handed / seconds,
        commands=commands,
        cpu_us=sum(result["cpu_us"] for result in results) / seconds,
        wait_p50_us=p50,
        wait_p99_us=p99,
        least_most=min(served) / max(1, max(served)),
        hold_us=held / max(1, acquired),
        stuck=sum(result.get("stuck", 0) for result in results),
    )


def hand_overs(results: list[dict]) -> int | None:
    if len(results) == 1 and "switches" in results[0]:
        return results[0]["switches"]
    if any(result.get("acquired_at_ns") is None for result in results):
        return None
    workers = itertools.chain(*(result["acquired_at_ns"] for result in results))
    order = sorted((at, who) for who, gaps in enumerate(workers) for at in itertools.accumulate(gaps))
    return sum(before[1] != after[1] for before, after in itertools.pairwise(order))


def percentiles(results: list[dict], wanted: list[float]) -> list[float]:
    """Of all processes; a kept wait stands for as many as its process had per kept one."""
    waits = []
    for result in results:
        weight = sum(result["acquired"]) / max(1, len(result["waits_us"]))
        waits += [(wait, weight) for wait in result["waits_us"]]
    waits.sort()
    upto = list(itertools.accumulate(weight for _, weight in waits))
    if not waits:
        return [0.0 for _ in wanted]
    return [next(w for (w, _), u in zip(waits, upto) if u >= share * upto[-1] - 1e-6) for share in wanted]
