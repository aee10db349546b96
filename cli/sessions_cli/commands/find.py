"""`sessions find`: words of title, folder, branch, app or id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from sessions_cli import completing, listing
from sessions_cli.options import FIND, Option

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class Converted(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """A value that the table of options knows how to read."""

    def __init__(self, option: Option) -> None:
        self.name = option.metavar or option.kind
        self._option = option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._option.convert(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def with_options(options: Sequence[Option]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The options of the table as click's."""

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        for option in reversed(options):
            if option.kind == "flag":
                added = click.option(f"--{option.name}", is_flag=True, help=option.help)
            elif option.kind == "choice":
                added = click.option(f"--{option.name}", type=click.Choice(option.choices), help=option.help)
            else:
                added = click.option(
                    f"--{option.name}",
                    type=Converted(option),
                    metavar=option.metavar,
                    help=option.help,
                    shell_complete=completing.branches if option.name == "branch" else _choices(option),
                )
            function = added(function)
        return function

    return decorate


def _choices(option: Option) -> Completer | None:
    """A completion of the values that the option knows beforehand; None when it knows none."""

    def complete(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(choice) for choice in option.choices if choice.startswith(incomplete)]

    return complete if option.choices else None


def run(words: Sequence[str], values: dict[str, object]) -> int:
    """What click has parsed, carried out."""
    if values["here"] and values["cwd"] is not None:
        raise click.UsageError("--here and --cwd exclude each other: --here is --cwd with the present folder")
    repos = None
    if values["repo"]:
        from sessions_cli.repository import folders_and_checkouts  # noqa: PLC0415 - starts git

        repos = folders_and_checkouts()
    return listing.run(words, values, repos)


@click.command("find")
@click.argument("words", nargs=-1)
@with_options(FIND)
def command(words: tuple[str, ...], **values: object) -> int:
    """Find sessions that hold every one of the WORDS in title, folder, branch, app or id, in any case or accent.

    Listed are sessions that a person can continue; --all lists the others too.
    """
    return run(words, values)
