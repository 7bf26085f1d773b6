"""One run: the processes of a subject in a mode, and the server's counts meanwhile."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field

from measures import Round, merged
from server import Server, stop
from subjects import Mode, Peer, programs

STARTUP_SECONDS = 2.0
DRAIN_SECONDS = 15.0


class RunFailed(Exception):
    """A peer program failed, or did not end."""


@dataclass
class Workers:
    """The processes of one run; all are gone when it is left."""

    processes: list[subprocess.Popen] = field(default_factory=list)
    outputs: list[tuple] = field(default_factory=list)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            stop(process)
        for file in itertools.chain(*self.outputs):
            file.close()

    def start(self, command: list[str]) -> None:
        files = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.outputs.append(files)
        self.processes.append(subprocess.Popen(command, stdout=files[0], stderr=files[1]))

    def results(self, until: float) -> list[dict]:
        return [self.result(index, until) for index in range(len(self.processes))]

    def result(self, index: int, until: float) -> dict:
        process, (output, errors) = self.processes[index], self.outputs[index]
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, until - time.time()))
        output.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            how = "it did not end" if process.returncode is None else f"exit status {process.returncode}"
            raise RunFailed(f"process {index}: {how}: {errors.read()[-600:].strip()}")
        return json.loads(output.read())


@dataclass(frozen=True)
class Load:
    """What all processes of a run are told, and when its window starts."""

    lock: str
    start: float
    arguments: list[str]


class Runner:
    """Runs subjects against one server."""

    def __init__(self, server: Server, options: argparse.Namespace) -> None:
        self.server = server
        self.options = options
        self.programs = programs(options.rust_worker)
        self.runs = itertools.count()

    def warmup(self, peer: Peer) -> float:
        return self.options.jvm_warmup if peer.family == "redisson" else 2

    def measure(self, peer: Peer, mode: Mode) -> Round:
        seconds = self.options.seconds
        load = self.load(mode, self.warmup(peer), seconds)
        with Workers() as workers:
            self.start(workers, peer, mode, load)
            sleep_until(load.start - 1)
            shares = self.server.client_shares(0.4)
            sleep_until(load.start)
            since, before = self.server.calls()
            sleep_until(load.start + seconds)
            until, after = self.server.calls()
            results = workers.results(load.start + seconds + DRAIN_SECONDS)
        return merged(peer, results, sent(after - before, shares) / (until - since), seconds)

    def check(self, peers: list[Peer]) -> tuple[int, int]:
        """Sections that the workers of these peers did on one name, and how many of them the counter saw."""
        mode, seconds = Mode(2, 4, 0, 0), 2
        load = self.load(mode, warmup=4, seconds=seconds)
        with Workers() as workers:
            for peer in peers:
                self.start(workers, peer, mode, load, "--check")
            results = workers.results(load.start + seconds + DRAIN_SECONDS)
        counted = int(self.server.connection.call("GET", f"{load.lock}:check") or 0)
        return sum(result["sections"] for result in results), counted

    def load(self, mode: Mode, warmup: float, seconds: int) -> Load:
        """A run that begins now, on an empty server."""
        self.server.connection.call("FLUSHALL")
        lock, start = f"bench-{next(self.runs)}", time.time() + STARTUP_SECONDS + warmup
        arguments = ["--redis", f"redis://127.0.0.1:{self.server.port}", "--name", lock]
        arguments += ["--workers", str(mode.workers), "--hold-us", str(1000 * mode.hold_ms)]
        arguments += ["--own-names", "true"] if mode.own_names else []
        arguments += ["--pause-ms", str(mode.pause_ms), "--warmup-s", f"{warmup:.0f}", "--seconds", str(seconds)]
        return Load(lock, start, arguments + ["--start-at-unix-ms", str(int(1000 * start))])

    def start(self, workers: Workers, peer: Peer, mode: Mode, load: Load, *more: str) -> None:
        for index in range(mode.processes):
            own = ["--peer", peer.name, "--process-index", str(index), *more]
            workers.start(self.programs[peer.family][1] + load.arguments + own)


def sleep_until(instant: float) -> None:
    time.sleep(max(0, instant - time.time()))


def sent(calls: Counter[str], shares: dict[str, float]) -> float:
    """The calls that clients sent; commandstats names subcommands, MONITOR only their commands."""
    return sum(count * shares.get(name.split("|")[0], 1.0) for name, count in calls.items())
