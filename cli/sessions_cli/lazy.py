"""The click group: knows every command by name, imports one when it is called."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from sessiond import __version__
from sessiond.errors import INTERRUPTED
from sessions_cli.options import COMMANDS, COMPLETE_VARIABLE
from sessions_cli.output import say

_OWN_OPTIONS = ("--help", "-h", "--version")


class LazyGroup(click.Group):
    """Words that are no command are words to find."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in COMMANDS and args[0] not in _OWN_OPTIONS:
            args = ["find", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands by name, none of them imported."""
        found = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return found if incomplete[:1] != "-" else click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"sessions_cli.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    name="sessions",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Without a command: `sessions WORDS` finds, `sessions` alone lists.",
)
@click.version_option(__version__, message="sessions %(version)s")
def group() -> None:
    """Find and continue your sessions with coding agents."""


def run_click(argv: Sequence[str]) -> int:
    """Carry out a command line; its exit code comes back.

    Not by `group.main`, which makes a closed pipe a failure; that serves completion, and ends the process.
    """
    if os.environ.get(COMPLETE_VARIABLE):
        group.main(args=list(argv), prog_name="sessions", standalone_mode=False, complete_var=COMPLETE_VARIABLE)
    try:
        with group.make_context("sessions", list(argv)) as context:
            code = group.invoke(context)
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except click.Abort:
        click.echo(err=True)
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _show(error: click.ClickException) -> None:
    """What is wrong with the command line, in one line; the whole help where click would show that."""
    message = error.format_message()
    if message.startswith("Usage: "):
        click.echo(message, err=True)
        return
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "sessions"
    say(f"{' '.join(message.split()).rstrip('.')}; see: {command} --help")
