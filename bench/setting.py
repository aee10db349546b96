"""Where the benchmark works: corpora made on demand, programs found or installed, clean environments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from bench.corpus import flat, mixed, seed_shape, small
from bench.process import Command

CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEER = "fast-resume==2.14.0"
SETTLE_S = 3.5
"""A file younger than this when it is read is looked at once more; corpora are left alone for as long."""


class Setting:
    def __init__(self, folder: str, factor: float, runs: int) -> None:
        """Corpora and indexes go into `folder`, of which nothing is kept; environments into the checkout's cache."""
        self.folder = folder
        self.tools = os.path.join(CHECKOUT, ".cache", "bench")
        self.factor = factor
        self.runs = runs
        self.long = False
        self.python = sys.executable
        self._homes: dict[str, str] = {}
        os.makedirs(folder, exist_ok=True)
        self._bin = self._installed("wheel", f"{CHECKOUT}[zstd]")
        self.peer = self._peer()
        self.ripgrep = shutil.which("rg")
        self.sqlite = shutil.which("sqlite3")

    # -- programs ----------------------------------------------------------------------------------------------------

    @property
    def sessiond(self) -> str:
        return os.path.join(self._bin, "sessiond")

    @property
    def sessions(self) -> str:
        return os.path.join(self._bin, "sessions")

    @property
    def wheel_python(self) -> str:
        return os.path.join(self._bin, "python")

    def _installed(self, name: str, what: str) -> str:
        """An environment of its own with `what` as an ordinary, compiled installation; its bin folder."""
        folder = os.path.join(self.tools, name)
        if not os.path.exists(os.path.join(folder, "bin", "python")):
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [os.path.join(folder, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "--upgrade", "pip"], check=True)  # older ones make commands that import `re`
        subprocess.run([*pip, "--upgrade", what], check=True)
        return os.path.join(folder, "bin")

    def _peer(self) -> str | None:
        try:
            path = os.path.join(self._installed("peer", PEER), "fr")
        except (OSError, subprocess.CalledProcessError):
            return None
        return path if os.path.exists(path) else None

    def programs(self) -> dict[str, str]:
        found = {"fast-resume": PEER.split("==")[1] if self.peer else "not installable here, left out"}
        for name, path, option in (("ripgrep", self.ripgrep, "--version"), ("sqlite3", self.sqlite, "--version")):
            if path is None:
                found[name] = "not installed, left out"
            else:
                text = subprocess.run([path, option], capture_output=True, text=True, check=True).stdout
                found[name] = text.split("\n")[0].split(" (")[0][:30]
        return found

    # -- corpora -----------------------------------------------------------------------------------------------------

    def home(self, name: str) -> str:
        """The home folder of a corpus: made at first, settled."""
        if name not in self._homes:
            home = os.path.join(self.folder, "homes", name)
            shutil.rmtree(home, ignore_errors=True)
            os.makedirs(home)
            self._maker(name)(home)
            time.sleep(SETTLE_S)
            self._homes[name] = home
        return self._homes[name]

    def _maker(self, name: str) -> Callable[[str], None]:
        if name == "mixed":
            return mixed.make
        if name == "seed":
            return lambda home: seed_shape.make(home, 0.1 * self.factor)
        if name == "flat":
            return lambda home: flat.make(home, self.scaled(flat.FILES))
        if name == "hidden":
            shape = small.Shape(self.scaled(100_000), median=2500, mean=2600, hidden=0.95, projects=1000)
        else:
            shape = small.Shape(self.scaled(int(name)))
        return lambda home: small.make(home, shape)

    def scaled(self, count: int) -> int:
        return max(50, int(count * self.factor))

    def forget(self, name: str) -> None:
        """Remove a corpus to make room."""
        if name in self._homes:
            shutil.rmtree(self._homes.pop(name))

    # -- commands ----------------------------------------------------------------------------------------------------

    def state(self, name: str) -> str:
        return os.path.join(self.folder, "state", name)

    def environment(self, home: str, state: str) -> dict[str, str]:
        """A person's plain environment, with this home and this place for the index."""
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", "HOME": home,
                "SESSIOND_HOME": state, "XDG_CACHE_HOME": os.path.join(state, "peer")}  # fmt: skip

    def once(self, name: str, *options: str, fresh: bool) -> Command:
        state = self.state(name)
        env = self.environment(self.home(name), state)
        return Command([self.sessiond, "--once", *options], env, self.clearing(state) if fresh else None)

    def client(self, name: str, *words: str) -> Command:
        env = self.environment(self.home(name), self.state(name))
        return Command([self.sessions, *words], env, expect=(0, 1))

    def fast_resume(self, name: str, *options: str, fresh: bool = False) -> Command:
        assert self.peer
        state = self.state(name + "-peer")
        env = self.environment(self.home(name), state)
        return Command([self.peer, "--json", "--limit", "10", *options], env, self.clearing(state) if fresh else None)

    def seed(self, verb: str, name: str, *words: str) -> Command:
        state = self.state(name + "-seed")
        os.makedirs(state, exist_ok=True)
        script = os.path.join(CHECKOUT, "bench", "seed_method.py")
        argv = [self.wheel_python, script, verb, self.home(name), os.path.join(state, "index.json"), *words]
        return Command(argv, self.environment(self.home(name), state))

    def walk(self, name: str) -> Command:
        script = os.path.join(CHECKOUT, "bench", "walk.py")
        return Command([self.wheel_python, script, self.home(name)], self.environment(self.home(name), ""))

    def plain(self, *argv: str) -> Command:
        return Command([self.wheel_python, *argv], self.environment(self.folder, ""))

    @staticmethod
    def clearing(state: str) -> Callable[[], None]:
        def clear() -> None:
            shutil.rmtree(state, ignore_errors=True)
            os.makedirs(state, mode=0o700)

        return clear
