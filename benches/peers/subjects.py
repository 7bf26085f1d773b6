"""What is compared, in which modes, and how it is started."""

from __future__ import annotations

import itertools
import os
import pathlib
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent


@dataclass(frozen=True)
class Mode:
    """A load: how many processes of how many workers, what they do with the lock and between two locks. All want one
    lock, or each has its own."""

    processes: int
    workers: int
    hold_ms: int
    pause_ms: int
    own_names: bool = False

    @property
    def name(self) -> str:
        names = "-own" if self.own_names else ""
        return f"{self.processes}x{self.workers}-hold{self.hold_ms}-pause{self.pause_ms}{names}"


MODES = [
    Mode(*shape, hold, pause)
    for shape, hold, pause in itertools.product([(1, 8), (4, 8), (4, 1)], [0, 1], [0, 5])
] + [Mode(1, workers, 0, 0, own_names=True) for workers in (1, 16, 64)]


@dataclass(frozen=True)
class Peer:
    """A subject. A floor has a shape of its own and runs with empty sections and without pauses only. Some programs can
    give each worker a lock of its own."""

    name: str
    family: str
    floor_shape: tuple[int, int] | None = None
    one_process_only: bool = False
    own_names: bool = False

    def shape(self, mode: Mode) -> Mode | None:
        """The processes and workers with which it runs in a mode, or None where it has no place."""
        if self.one_process_only and mode.processes > 1 or mode.own_names and not self.own_names:
            return None
        if self.floor_shape is None:
            return mode
        return Mode(*self.floor_shape, 0, 0) if mode.hold_ms == mode.pause_ms == 0 else None


PEERS = [
    Peer("leasehold", "rust", own_names=True),
    Peer("floor-one-script", "rust", floor_shape=(1, 1)),
    Peer("floor-push", "rust", floor_shape=(2, 1)),
    Peer("tokio-mutex", "rust", one_process_only=True),
    Peer("rslock", "rust", own_names=True),
    Peer("rslock-default", "rust"),
    Peer("redisson-rlock", "redisson", own_names=True),
    Peer("redisson-fair", "redisson"),
    Peer("redsync", "go"),
    Peer("redsync-default", "go"),
    Peer("rueidislock", "go"),
    Peer("redis-semaphore", "node"),
    Peer("redis-semaphore-default", "node"),
]


def programs(rust_worker: str | None) -> dict[str, tuple[pathlib.Path | None, list[str]]]:
    """By family: the file that building it makes, and how to run it."""
    jar, go, node = HERE / "redisson/target/redisson-peer.jar", HERE / "go/target/peers", HERE / "node"
    class_path = f"{jar}{os.pathsep}{jar.parent / 'lib'}/*"
    return {
        "rust": (pathlib.Path(rust_worker) if rust_worker else None, [rust_worker or "", "worker"]),
        "redisson": (jar, ["java", "-cp", class_path, "peer.Main"]),
        "go": (go, [str(go)]),
        "node": (node / "node_modules", ["node", str(node / "main.js")]),
    }
