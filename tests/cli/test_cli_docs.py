"""docs/cli.md says every command, every option and every exit code."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from sessiond import errors
from sessions_cli.lazy import group
from sessions_cli.options import COMMANDS, FIND

TEXT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def command(name):
    found = group.get_command(click.Context(group), name)
    assert found is not None
    return found


def options(one):
    """The long options of a command and of those below it."""
    below = one.commands.values() if isinstance(one, click.Group) else ()
    own = {name for parameter in one.params for name in parameter.opts if name.startswith("--")}
    return own.union(*[options(sub) for sub in below])


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_named(name):
    assert f"`sessions {name}" in TEXT


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_is_named_where_its_command_is(name):
    paragraphs = [part for part in re.split(r"\n\n|\n(?=\|)", TEXT) if name in ("find", "list") or name in part]
    headed = re.search(rf"(?ms)^### Options of [^\n]*`{name}`.*?(?=^#)", TEXT)
    spoken = "\n".join([*paragraphs, headed.group() if headed else ""])
    missing = {option for option in options(command(name)) if option not in spoken}
    assert not missing


@pytest.mark.parametrize("option", FIND, ids=lambda option: option.name)
def test_each_option_of_find_has_a_line_of_its_own(option):
    assert re.search(rf"(?m)^\| `--{option.name}( [A-Z]+)?` \|", TEXT)


def test_each_exit_code_has_a_line():
    codes = {e.exit_code for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.SessiondError)}
    for code in codes | {0, 1, 2, 130}:
        assert f"\n| {code} |" in TEXT


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name):
    one = command(name)
    with click.Context(one, info_name=name) as context:
        assert one.get_help(context).startswith("Usage: ")
    assert one.help


def test_no_option_is_named_that_does_not_exist():
    known = {"--version", "--help"}.union(*[options(command(name)) for name in COMMANDS])
    assert set(re.findall(r"--[a-z][a-z-]+", TEXT)) <= known
