"""The fast path: `find`, `list` and `path` for argument lists that are fully known, without importing click."""

from __future__ import annotations

from collections.abc import Sequence

from sessions_cli.options import COMMANDS, FIND

Request = tuple[str, list[str], dict[str, object]]
"""(command, words, option key -> converted value)"""


def parse(argv: Sequence[str]) -> Request | None:
    """What is asked for, or None when click has to look at it: an error, a need for help, another command."""
    if not argv:
        return "list", [], {}
    command = argv[0]
    if command == "path":
        return ("path", [], {}) if len(argv) == 1 else None
    if command not in COMMANDS:
        argv = ("find", *argv)
        command = "find"
    if command not in ("find", "list"):
        return None
    options = {f"--{o.name}": o for o in FIND}
    words: list[str] = []
    values: dict[str, object] = {}
    rest = iter(argv[1:])
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            words.append(argument)
            continue
        if argument == "--":
            words.extend(rest)
            break
        name, equals, value = argument.partition("=")
        option = options.get(name)
        if option is None:
            return None
        if option.kind == "flag":
            if equals:
                return None
            values[option.key] = True
            continue
        if not equals:
            value = next(rest, "-")
            if value.startswith("-"):
                return None
        try:
            values[option.key] = option.convert(value)
        except ValueError:
            return None
    if values.get("repo") or (values.get("here") and "cwd" in values) or (words and command == "list"):
        return None
    return command, words, values


def run(argv: Sequence[str]) -> int | None:
    """Answer, if it is for us; the exit code, else None."""
    request = parse(argv)
    if request is None:
        return None
    command, words, values = request
    if command == "path":
        from sessions_cli.commands import path  # noqa: PLC0415

        return path.run()
    from sessions_cli import listing  # noqa: PLC0415

    return listing.run(words, values)
