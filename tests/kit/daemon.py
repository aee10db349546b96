"""A real daemon over a temporary world."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

from tests.kit.world import until

HURRIED = {
    "recheck_s": "sessiond.daemon.loop.RECHECK_S",
    "short_rescan_s": "sessiond.daemon.loop.SHORT_RESCAN_S",
    "checkpoint_s": "sessiond.daemon.loop.CHECKPOINT_S",
    "gap_idle_s": "sessiond.daemon.loop.GAP_IDLE_S",
    "retry_max_s": "sessiond.daemon.held.RETRY_MAX_S",
    "racy_ms": "sessiond.scan.decide.RACY_MS",
    "busy_ms": "sessiond.store.connection.BUSY_MS",
}
"""Constants that a test may shorten so that it need not wait; the mechanism stays the same."""
_MAIN = "import sys; from sessiond.__main__ import main; sys.exit(main([]))"


def _module_of(name):
    return "import " + HURRIED[name].rpartition(".")[0]


class Daemon:
    """One `sessiond` process; its notifications come in over a socket of ours, as a service manager would get them."""

    def __init__(self, world, *, prefix=(), env=None, code="", **constants):
        """`prefix`: a command that runs it. `code`: Python text to run before the daemon.

        `constants`: names of `HURRIED` with the values they shall have in this process.
        """
        self.world = world
        self.process = None
        self.messages = []
        self._prefix = list(prefix)
        self._env = env or {}
        self._code = "\n".join([*(f"{_module_of(n)}\n{HURRIED[n]} = {v!r}" for n, v in constants.items()), code])
        self._socket = None
        self._started_ms = 0

    def start(self, *, wait=True, complete=True):
        address = f"\0sessiond-test-{os.getpid()}-{id(self)}-{time.monotonic_ns()}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.setblocking(False)
        env = {**self.world.env, "NOTIFY_SOCKET": address.replace("\0", "@"), **self._env}
        program = ["-c", f"{self._code}\n{_MAIN}"] if self._code.strip() else ["-m", "sessiond"]
        self._started_ms = time.time_ns() // 1_000_000
        self.process = subprocess.Popen(
            [*self._prefix, sys.executable, *program],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.world.folder,
        )  # fmt: skip
        if wait:
            until(lambda: self.is_ready() or self.process.poll() is not None, "the daemon is ready", 30)
            assert self.process.poll() is None, self.end()
            if complete:
                until(self._is_complete, "the first scan is done", 60)
        return self

    def _is_complete(self):
        """A scan that this process began has ended: what it says of itself is written after the scan."""
        started_ms = self.world.health().get("started_ms", 0)
        return started_ms >= self._started_ms and self.world.meta("state") == "complete"

    # -- what it says ------------------------------------------------------------------------------------------------

    def listen(self):
        """All notifications so far."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.messages.append(self._socket.recv(65536).decode())
        return self.messages

    def is_ready(self):
        return "READY=1" in self.listen()

    def status(self):
        """The last STATUS line."""
        return next((m[7:] for m in reversed(self.listen()) if m.startswith("STATUS=")), "")

    def log(self):
        path = os.path.join(self.world.state, "sessiond.log")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def stat(self, name):
        """A line of procfs `status` in kB or as a number."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))

    def cpu_s(self):
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # -- what is done to it ------------------------------------------------------------------------------------------

    @property
    def pid(self):
        return self.process.pid

    def send(self, number):
        self.process.send_signal(number)

    def is_alive(self):
        return self.process.poll() is None

    @contextlib.contextmanager
    def stopped(self):
        """The process stands still in the block, as in a suspended machine."""
        self.send(signal.SIGSTOP)
        try:
            until(lambda: self._state() == "T", "the process stands still")
            yield
        finally:
            self.send(signal.SIGCONT)

    def _state(self):
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]

    def kill(self):
        self.process.kill()
        return self.end()

    def stop(self, number=signal.SIGTERM, within_s=5.0):
        """End it politely; its exit code."""
        if self.is_alive():
            self.send(number)
        return self.end(within_s)

    def end(self, within_s=5.0):
        """Wait for its end; the exit code."""
        try:
            self.out, self.err = (text.decode() for text in self.process.communicate(timeout=within_s))
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.communicate()
        return self.process.returncode

    def close(self):
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            self.process.communicate()
        if self._socket is not None:
            self._socket.close()
