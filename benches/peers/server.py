"""A private redis-server, and what it tells of the commands that clients send."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter


class Connection:
    """As much of a Redis client as is needed here."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.replies = self.socket.makefile("rb")

    def call(self, *words: str) -> str | None:
        self.send(*words)
        line = self.replies.readline().decode()
        if line.startswith("$"):
            length = int(line[1:])
            return None if length < 0 else self.replies.read(length + 2)[:-2].decode()
        if not line or line.startswith("-"):
            raise ConnectionError(f"{words[0]}: {line.strip() or 'connection closed'}")
        return line[1:].strip()

    def send(self, *words: str) -> None:
        coded = [word.encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(coded) + b"".join(b"$%d\r\n%s\r\n" % (len(c), c) for c in coded))

    def info(self, section: str) -> dict[str, str]:
        lines = (self.call("INFO", section) or "").splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def close(self) -> None:
        self.replies.close()
        self.socket.close()


class Server:
    """A private redis-server that lives as long as this object is entered."""

    def __enter__(self) -> Server:
        self.folder = tempfile.mkdtemp(prefix="leasehold-bench-")
        self.port = free_port()
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder]
        command += ["--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            self.connection = self.connected()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        stop(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def connected(self) -> Connection:
        for _ in range(100):
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                return Connection(self.port)
            time.sleep(0.1)
        raise SystemExit("redis-server did not start")

    def calls(self) -> tuple[float, Counter[str]]:
        """When, and how often each command was called until then."""
        stats = self.connection.info("commandstats")
        calls = {name.removeprefix("cmdstat_"): int(text.split(",")[0][6:]) for name, text in stats.items()}
        return time.monotonic(), Counter({name: count for name, count in calls.items() if name != "info"})

    def client_shares(self, seconds: float) -> dict[str, float]:
        """By command: how much of its calls clients sent, as opposed to scripts.

        On Redis 7.0 `commandstats`, `total_commands_processed` and the slow log's ids all count the calls made inside
        scripts like those that clients send; MONITOR tells them apart.
        It slows the server, so it runs for a moment before the window; the shares apply to the window's counts.
        """
        seen, from_clients = Counter[str](), Counter[str]()
        for source, command in MONITORED.findall(self.monitored(seconds)):
            name = command.decode().lower()
            seen[name] += 1
            from_clients[name] += source != b"lua"
        return {name: from_clients[name] / count for name, count in seen.items()}

    def monitored(self, seconds: float) -> bytes:
        connection, lines, until = Connection(self.port), bytearray(), time.monotonic() + seconds
        try:
            connection.send("MONITOR")
            while (left := until - time.monotonic()) > 0:
                connection.socket.settimeout(left)
                with contextlib.suppress(TimeoutError):
                    lines += connection.socket.recv(1 << 20)
        finally:
            connection.close()
        return bytes(lines)


MONITORED = re.compile(rb'^\+[\d.]+ \[\d+ ([^\]]+)\] "([^"]+)"', re.MULTILINE)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def stop(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
