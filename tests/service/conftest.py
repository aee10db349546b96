"""An installation from a wheel that an ordinary user can read, and real user sessions to install the service in."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from tests.service.usersession import HOME, UserSession, why_not

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEPENDENCIES = ("click", "watchdog")


@pytest.fixture(scope="session")
def installation():
    """The `bin` folder of a fresh environment with the wheel in it, outside of /home and /run."""
    reason = why_not()
    if reason:
        pytest.skip(f"no user session: {reason}")
    folder = tempfile.mkdtemp(prefix="sessiond-wheel-", dir="/var/tmp")
    try:
        os.chmod(folder, 0o755)
        _build(os.path.join(folder, "dist"))
        _install(os.path.join(folder, "dist"), os.path.join(folder, "env"))
        yield os.path.join(folder, "env", "bin")
    finally:
        shutil.rmtree(folder)


def _build(target):
    backend = ["-m", "hatchling", "build", "-t", "wheel", "-d", target]
    frontend = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check", "-w", target, "."]
    command = backend if importlib.util.find_spec("hatchling") else frontend
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, *command], cwd=ROOT, env=env, check=True, capture_output=True)


def _install(dist, environment):
    """By pip, but without the network: the dependencies are copied from the environment that runs the tests."""
    interpreter = os.path.join(environment, "bin", "python")
    (wheel,) = os.listdir(dist)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", interpreter]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", os.path.join(dist, wheel)], check=True)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([interpreter, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    for name in DEPENDENCIES:
        origin = os.path.dirname(importlib.util.find_spec(name).origin)
        shutil.copytree(origin, os.path.join(packages, name))
    subprocess.run(["chmod", "-R", "a+rX", environment], check=True)


class Machine(UserSession):
    """A user session with the wheel's programs, and a few words for what the tests ask of it."""

    def __init__(self, programs, **options):
        self.programs = programs
        super().__init__(**options)

    def sessions(self, *arguments, **options):
        return self.run(f"{self.programs}/sessions", *arguments, **options)

    def systemctl(self, *arguments, **options):
        return self.run("systemctl", "--user", *arguments, **options)

    def show(self, name):
        return self.systemctl("show", "--property", name, "--value", "sessiond.service").out.strip()

    def main_pid(self):
        return int(self.show("MainPID"))

    def listed(self, *words):
        """Titles of what the client finds, from an index that somebody else keeps up to date."""
        done = self.sessions("find", "--json", "--no-refresh", *words)
        return [row["title"] for row in json.loads(done.out)] if done.code == 0 else []

    def add_session(self, number, prompt):
        """A Claude Code session with one prompt, which becomes its title."""
        session_id = f"00000000-0000-4000-8000-{number:012d}"
        record = {
            "type": "user", "uuid": session_id, "parentUuid": None, "isSidechain": False, "sessionId": session_id,
            "timestamp": f"2026-11-30T10:00:{number % 60:02d}.000Z", "cwd": f"{HOME}/code", "gitBranch": "main",
            "version": "2.1.0", "userType": "external", "entrypoint": "cli",
            "message": {"role": "user", "content": prompt},
        }  # fmt: skip
        path = f"{HOME}/.claude/projects/-home-u-code/{session_id}.jsonl"
        self.write(path, json.dumps(record) + "\n")
        return path, session_id

    def files(self):
        """Everything in the user's home, sorted."""
        return self.run("find", HOME, "-mindepth", "1").out.splitlines()


@pytest.fixture(scope="module")
def machine(installation):
    session = Machine(installation)
    try:
        for number, prompt in enumerate(("mend the gate", "paint the fence", "count the sheep")):
            session.add_session(number, prompt)
        yield session
    finally:
        session.close()
