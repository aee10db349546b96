"""A command as one line for a POSIX shell. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from sessions_cli.render import printable


def line(folder: str | None, environment: Mapping[str, str | None], argv: Sequence[str]) -> str | None:
    """`cd -- FOLDER && env … PROGRAM …`, all of it printable; None when a value holds a line break.

    `env` also keeps an alias of the user's from adding flags to the program.
    """
    unset = [name for name, value in environment.items() if value is None]
    words = ["env", *(word for name in unset for word in ("-u", name))]
    words += [f"{name}={value}" for name, value in environment.items() if value is not None]
    words += argv
    if any("\n" in word or "\r" in word for word in (*words, folder or "")):
        return None
    command = " ".join(map(quoted, words))
    return command if folder is None else f"cd -- {quoted(folder)} && {command}"


def quoted(word: str) -> str:
    """The word for a shell; what is unprintable is written in octal, byte by byte, so that nothing of it is drawn."""
    if printable(word) == word:
        return shlex.quote(word)
    escaped = "".join(_octal(c) for c in word)
    return f"\"$(printf '{escaped}')\""


def _octal(c: str) -> str:
    if c.isascii() and c.isprintable() and c not in "%\\'\"-":
        return c
    return "".join(f"\\{byte:03o}" for byte in c.encode(errors="surrogateescape"))
