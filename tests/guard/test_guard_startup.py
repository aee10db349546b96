"""What starting the commands costs, in modules and in instructions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

FORBIDDEN = {
    "argparse", "click", "dataclasses", "datetime", "enum", "inspect", "json", "logging", "pathlib", "re",
    "sessiond.config", "sessiond.model", "sessiond.scan", "socket", "sqlite3", "subprocess", "typing", "watchdog",
}  # fmt: skip
ADDED_MODULES = 34
INSTRUCTIONS = 2.2
"""`find` against a bare interpreter; callgrind counts the same on every machine of one build."""
_FIND = "import sys; sys.argv[1:] = {argv!r}; from sessions_cli import main; main.run(sys.argv[1:])"


def python(code, *options):
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip


def modules_of(code):
    shown = python("import sys; before = set(sys.modules)\n" + code + "\nprint(*sorted(set(sys.modules) - before))")
    return set(shown.stdout.splitlines()[-1].split())


@pytest.fixture
def indexed(corpus):
    python("import sys; from sessiond.__main__ import main; sys.exit(main(['--once']))")
    return corpus


def test_find_imports_no_module_that_costs_start_up(indexed):
    found = modules_of(_FIND.format(argv=["find", "checkout", "--no-refresh"]))
    assert found & FORBIDDEN == set()


def test_find_imports_few_modules(indexed):
    found = modules_of(_FIND.format(argv=["find", "checkout", "--no-refresh"]))
    assert len(found) <= ADDED_MODULES, found


def test_once_never_imports_watchdog_or_click(corpus):
    found = modules_of("from sessiond.__main__ import main; main(['--once'])")
    assert found & {"watchdog", "click", "asyncio", "subprocess", "urllib.request"} == set()


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_find_takes_little_more_than_twice_the_instructions_of_a_bare_interpreter(indexed, tmp_path):
    site = [path for path in sys.path if path.endswith("site-packages")]
    setting = {**os.environ, "PYTHONPATH": os.pathsep.join(["cli", ".", *site]), "PYTHONHASHSEED": "0"}

    def instructions(code):
        python(code)  # so that everything is compiled
        shown = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={tmp_path}/out", sys.executable, "-I", "-c", code],
            env=setting, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return int(shown.stderr.rpartition("Collected :")[2].split()[0])

    paths = f"import sys; sys.path[:0] = {[os.path.abspath('cli'), os.path.abspath('.')]!r}; "
    bare = instructions("pass")
    call = paths + _FIND.format(argv=["find", "checkout", "--no-refresh", "--limit", "20"])
    find = min(instructions(call), instructions(call))  # a module that was just written may be compiled once more
    assert find <= INSTRUCTIONS * bare, find / bare
