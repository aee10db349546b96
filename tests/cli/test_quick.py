"""The fast path against click, and what it imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sessiond.model import Session
from sessions_cli import lazy, listing, quick, when
from sessions_cli.options import COMMANDS, FIND

VALUES = st.sampled_from(
    [
        "",
        "3d",
        "2026-11-01",
        "x",
        "codex",
        "claude-code",
        "main",
        "-",
        "--",
        "-1",
        "0",
        "7",
        "07",
        "size",
        "always",
        "=",
        "a=b",
    ]
)
TOKENS = st.one_of(
    st.sampled_from([*COMMANDS, "-h", "--help", "--version", "--", "-", "-x", "word", "two words", "é", "--nope"]),
    st.sampled_from([f"--{option.name}" for option in FIND]),
    st.builds("{}={}".format, st.sampled_from([f"--{option.name}" for option in FIND]), VALUES),
    st.builds(lambda option: f"--{option.name}"[:-1], st.sampled_from(FIND)),
    VALUES,
)


def by_click(argv, monkeypatch):
    """What click makes of an argument list: (words, given values)."""
    seen = []
    monkeypatch.setattr(listing, "run", lambda words, values, repos=None: seen.append((words, values)) or 0)
    assert lazy.run_click(argv) == 0, f"click refuses {argv}"
    ((words, values),) = seen
    return list(words), {key: value for key, value in values.items() if value is not None and value is not False}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TOKENS, max_size=6))
@example(["find", "--limit", "0"])
@example(["--cwd", "", "x"])
@example(["find", "a", "--", "--all"])
def test_whatever_the_fast_path_accepts_click_accepts_with_the_same_meaning(argv):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(when, "now_ms", lambda: 1_796_000_000_000)
        request = quick.parse(argv)
        if request is None or request[0] == "path":
            return
        command, words, values = request
        assert by_click(argv or ["list"], patch) == (words, values)
        assert command in ("find", "list")


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["checkout"],
        ["find", "two", "words"],
        ["list", "--json"],
        ["--app", "codex"],
        ["find", "x", "--limit=3"],
        ["path"],
    ],
)
def test_ordinary_argument_lists_take_the_fast_path(argv):
    assert quick.parse(argv) is not None


@pytest.mark.parametrize(
    "argv", [["--help"], ["find", "--help"], ["list", "x"], ["find", "--nope"], ["show", "x"], ["--limit"], ["--repo"]]
)
def test_errors_help_and_other_commands_go_to_click(argv):
    assert quick.parse(argv) is None


# -- what is imported --------------------------------------------------------------------------------------------------

OURS = {
    "sessiond", "sessiond.apps", "sessiond.columns", "sessiond.errors", "sessiond.paths", "sessiond.store",
    "sessiond.store.fold", "sessiond.store.query", "sessiond.store.reader", "sessiond.store.search", "sessions_cli",
    "sessions_cli.context", "sessions_cli.listing", "sessions_cli.main", "sessions_cli.options", "sessions_cli.output",
    "sessions_cli.quick", "sessions_cli.render", "sessions_cli.when",
}  # fmt: skip
THEIRS = {"_sqlite3", "fcntl", "time", "errno", "__future__"}
OF_SQLITE = {
    "_collections", "_functools", "_operator", "collections", "collections.abc", "functools", "itertools", "keyword",
    "operator", "reprlib", "types", "_types", "_reprlib", "warnings", "_sqlite3", "weakref", "_weakrefset", "_thread",
    "annotationlib",
}  # fmt: skip
"""What `_sqlite3` itself needs, in one version of Python or another."""


def imported(process_run, *argv):
    """The modules that a command line imports in a fresh process."""
    code = textwrap.dedent(f"""
        import os, sys
        before = set(sys.modules)
        from sessions_cli import main
        code = main.run({list(argv)!r})
        after = set(sys.modules) - before
        sys.stdout.flush()
        import json
        print(json.dumps(sorted(after)), file=sys.stderr)
    """)
    done = process_run(code)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.fixture
def fresh():
    def run(code):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        return subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=env, check=False)

    return run


@pytest.mark.parametrize(
    "argv", [("checkout",), ("find", "checkout", "--json"), ("list", "--all"), ("list", "--no-refresh")]
)
def test_the_fast_path_imports_this_and_no_more(client, fresh, argv):
    client.fill(Session("codex", "c5e1a7b2", "/h", title="checkout"), last_full_scan_ms=2**53)
    names = imported(fresh, *argv)
    assert names <= OURS | THEIRS | OF_SQLITE
    assert "_sqlite3" in names


def test_path_opens_no_database(client, fresh):
    client.fill()
    names = imported(fresh, "path")
    assert names <= OURS | THEIRS | OF_SQLITE | {"sessions_cli.commands", "sessions_cli.commands.path"}
    assert "_sqlite3" not in names


def test_bringing_the_index_up_to_date_needs_no_click(lone_client, fresh):
    lone_client.fill(Session("codex", "c5e1a7b2", "/h", title="checkout"))
    names = imported(fresh, "checkout")
    assert "sessiond.scan" in names
    assert not names & {"click", "watchdog", "asyncio", "argparse"}
