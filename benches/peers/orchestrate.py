#!/usr/bin/env python3
"""Runs lock libraries against each other on one contended name; scripts/bench-peers.sh builds them and calls this.

Every peer program takes the same command line:

    --peer NAME --redis URL --name LOCKNAME --workers N --hold-us H --pause-ms P --warmup-s W
    --seconds S --process-index I [--start-at-unix-ms T] [--check]

Its workers loop from the start: ask for the lock, hold it for H microseconds, release it, pause P milliseconds. It
measures from T to T + S, where T is the same in all processes of a run, and prints one line of JSON:

    peer            the name given
    acquired        acquisitions per worker, of those that fell within the window
    hold_us_mean    mean measured time between having the lock and starting to release it
    cpu_us          processor time of the process, user and system, within the window
    stuck           workers that still wait for the lock 5 s after all others stopped
    waits_us        at most 20,000 waits in order, evenly spaced out of all
    acquired_at_ns  per worker: the instant of its first acquisition in CLOCK_MONOTONIC, then distances; or
    switches        acquisitions whose predecessor in this process was another worker's; enough for one process
    sections        with --check: how often it read, incremented and wrote back LOCKNAME:check under the lock

A hand-over is an acquisition by another worker than the one before: a worker that releases and takes the lock again
hands nothing over, which makes libraries look fast whose waiters starve. Both rates are printed.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import random
import signal
import sys

from report import Report
from runner import STARTUP_SECONDS, Runner, RunFailed
from server import Server
from subjects import MODES, PEERS, Peer, programs

SEED = 4


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse()
    missing = unavailable(options)
    peers = [peer for peer in PEERS if peer.name in options.peers and peer.name not in missing]
    with Server() as server:
        runner = Runner(server, options)
        return check(runner, peers, missing) if options.check else bench(runner, peers, missing, options)


def parse() -> argparse.Namespace:
    names, modes = [peer.name for peer in PEERS], [mode.name for mode in MODES]
    parser = argparse.ArgumentParser(
        description="Lock libraries on one contended name, or on a name of each worker.",
        epilog=f"modes: {', '.join(modes)}. peers: {', '.join(names)}.",
    )
    parser.add_argument("--modes", type=subset(modes), default=modes, metavar="A,B", help="default: all")
    parser.add_argument("--peers", type=subset(names), default=names, metavar="A,B", help="default: all")
    parser.add_argument("--seconds", type=int, default=4, help="measured per run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--jvm-warmup", type=float, default=40, metavar="S", help="default: %(default)s")
    parser.add_argument("--rust-worker", metavar="PATH", help="the executable of `cargo bench -p leasehold-benches --bench contention`")
    parser.add_argument("--missing", action="append", default=[], metavar="FAMILY=REASON", help="not built, and why")
    parser.add_argument("--check", action="store_true", help="only check that the peers exclude")
    options = parser.parse_args()
    if options.seconds < 1 or options.rounds < 1 or options.jvm_warmup < 1:
        parser.error("--seconds, --rounds and --jvm-warmup are at least 1")
    return options


def subset(known: list[str]):
    def parsed(text: str) -> list[str]:
        asked = text.split(",")
        if unknown := [name for name in asked if name not in known]:
            raise argparse.ArgumentTypeError(f"unknown {', '.join(unknown)}; there are {', '.join(known)}")
        return asked

    return parsed


def unavailable(options: argparse.Namespace) -> dict[str, str]:
    """Which of the peers asked for cannot run, and why."""
    told = dict(reason.split("=", 1) for reason in options.missing)
    for family, (built, _) in programs(options.rust_worker).items():
        if built is None:
            told.setdefault(family, "no --rust-worker was given")
        elif not built.exists():
            told.setdefault(family, "not built; scripts/bench-peers.sh builds it")
    return {peer.name: told[peer.family] for peer in PEERS if peer.name in options.peers and peer.family in told}


def bench(runner: Runner, peers: list[Peer], missing: dict[str, str], options: argparse.Namespace) -> int:
    modes = [mode for mode in MODES if mode.name in options.modes]
    report, order = Report(), random.Random(SEED)
    per_mode = [(mode, [(p, p.shape(mode)) for p in peers if p.shape(mode)]) for mode in modes]
    seconds = sum(STARTUP_SECONDS + runner.warmup(p) + options.seconds for _, runs in per_mode for p, _ in runs)
    heading(runner.server, options, seconds * options.rounds)
    for number in range(options.rounds):
        for mode, runs in order.sample(per_mode, len(per_mode)):
            for peer, shape in order.sample(runs, len(runs)):
                what = f"round {number + 1} of {options.rounds}, {mode.name}, {peer.name}"
                print(what, file=sys.stderr, flush=True)
                try:
                    report.add(mode, peer, number, runner.measure(peer, shape))
                except RunFailed as failed:
                    report.failures.append(f"{what}: {failed}")
    report.print(modes, missing)
    return 1 if report.failures else 0


def heading(server: Server, options: argparse.Namespace, seconds: float) -> None:
    version = server.connection.info("server")["redis_version"]
    print(f"{datetime.date.today()}, {os.cpu_count()} cores, {platform.machine()}, redis-server {version} on loopback")
    warmup = f"warm-up 2 s (JVM {options.jvm_warmup:g} s)"
    print(f"{options.rounds} rounds of {options.seconds} s, {warmup}; about {seconds / 60:.0f} minutes", flush=True)


def check(runner: Runner, peers: list[Peer], missing: dict[str, str]) -> int:
    """A counter that is read and written back under the lock misses nothing; under two unrelated locks it must."""
    peers = [peer for peer in peers if peer.family != "rust"]
    outcomes = [checked(runner, peer.name, [peer], exclusive=True) for peer in peers]
    control = [peer for peer in peers if peer.name in ("redsync", "rueidislock")]
    if len(control) == 2:
        outcomes.append(checked(runner, "control, two locks at once", control, exclusive=False))
    for name, reason in missing.items():
        print(f"not run: {name}: {reason}")
    return 0 if all(outcomes) else 1


def checked(runner: Runner, name: str, peers: list[Peer], exclusive: bool) -> bool:
    try:
        sections, counted = runner.check(peers)
    except RunFailed as failed:
        print(f"FAILED  {name}: {failed}", flush=True)
        return False
    good = counted > 0 and (sections == counted) == exclusive
    print(f"{'ok' if good else 'FAILED':<8}{name}: {sections} sections, counter {counted}", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main())
