"""One run of a command: wall time, CPU time, peak memory and bytes read, and many runs interleaved."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Command:
    """What is started; `before` brings its files into the wanted state and is not timed."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None
    expect: tuple[int, ...] = (0,)
    cwd: str | None = None


@dataclass
class Run:
    wall_s: float
    cpu_s: float
    read_bytes: int
    """Bytes asked of the kernel by read calls; 0 where the system does not tell."""


@dataclass
class Series:
    """Runs of one command."""

    runs: list[Run]

    @property
    def wall_ms(self) -> float:
        return statistics.median(r.wall_s for r in self.runs) * 1000

    @property
    def cpu_ms(self) -> float:
        return statistics.median(r.cpu_s for r in self.runs) * 1000

    @property
    def read_bytes(self) -> int:
        return int(statistics.median(r.read_bytes for r in self.runs))

    @property
    def spread(self) -> str:
        """Smallest to largest wall time."""
        walls = [r.wall_s * 1000 for r in self.runs]
        return f"{_short(min(walls))}-{_short(max(walls))}"


def _short(ms: float) -> str:
    return f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"


def run(command: Command) -> Run:
    """Start, wait, and take the kernel's account; raises RuntimeError for an exit code that was not expected."""
    if command.before is not None:
        command.before()
    devnull = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, devnull, n) for n in (0, 1, 2)]
    environment = dict(command.env or os.environ)
    here = os.getcwd()
    try:
        if command.cwd:
            os.chdir(command.cwd)
        began = time.perf_counter()
        pid = os.posix_spawn(command.argv[0], list(command.argv), environment, file_actions=actions)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - began
    finally:
        os.chdir(here)
        os.close(devnull)
    read_bytes = _read_bytes(pid)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in command.expect:
        raise RuntimeError(f"{' '.join(command.argv)} ended with {code}")
    return Run(wall, usage.ru_utime + usage.ru_stime, read_bytes)


def _read_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            return int(file.readline().split()[1])
    except (OSError, ValueError):
        return 0


def interleaved(commands: Mapping[str, Command], runs: int, warm_up: int = 1) -> dict[str, Series]:
    """Every command `runs` times, one after the other in turn, so that a noisy moment hits all alike."""
    collected: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(warm_up + runs):
        for name, command in commands.items():
            result = run(command)
            if number >= warm_up:
                collected[name].append(result)
    return {name: Series(done) for name, done in collected.items()}


_PEAK = """
import os, sys, time
nowhere = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0)
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[nowhere])
def tree(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [pid, *(p for c in file.read().split() for p in tree(int(c)))]
def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
most = 0
while True:
    done, status, usage = os.wait4(child, os.WNOHANG)
    if done:
        break
    try:
        most = max(most, sum(map(pss, tree(child))))
    except (OSError, StopIteration):
        pass
    time.sleep(0.01)
sys.stderr.write(str(max(most, usage.ru_maxrss)))
"""


def peak_mb(command: Command) -> float:
    """Peak memory of one run of its own, started from a small process: a child inherits its parent's peak.

    The largest resident set of its processes, or all their proportional shares together, whichever was more.
    """
    import subprocess  # noqa: PLC0415

    if command.before is not None:
        command.before()
    done = subprocess.run(
        [sys.executable, "-IS", "-c", _PEAK, *command.argv],
        env=dict(command.env or os.environ), stderr=subprocess.PIPE, check=True, cwd=command.cwd,
    )  # fmt: skip
    unit = 1 if sys.platform == "darwin" else 1024
    return int(done.stderr.split()[-1]) * unit / 1e6
