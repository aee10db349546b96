"""Writing to stdout and stderr: results on the one, talk on the other; a closed pipe is no error."""

from __future__ import annotations

import errno
import os
import sys

from sessions_cli.render import printable


def write(text: str) -> None:
    """Results: UTF-8, or what the terminal's locale can show; there at once, so that talk comes after them."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    shown = is_terminal()
    encoding = sys.stdout.encoding if shown else "utf-8"
    sys.stdout.buffer.write(text.encode(encoding, "backslashreplace"))
    if shown:
        sys.stdout.buffer.flush()


def say(line: str) -> None:
    """One line of talk, printable whatever is in it; lost where stderr cannot take it, for nobody hears it there."""
    if sys.stderr is None:
        return
    text = f"sessions: {printable(line)}\n"
    try:
        try:
            sys.stderr.write(text)
        except UnicodeEncodeError:
            sys.stderr.write(text.encode("ascii", "backslashreplace").decode())
    except OSError:
        pass


def is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def is_talk_seen() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def terminal_columns() -> int:
    told = os.environ.get("COLUMNS", "")
    if told.isascii() and told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def is_colored(choice: str) -> bool:
    """Whether to colour: as told, else on a terminal that can and a user who did not decline (NO_COLOR)."""
    if choice != "auto":
        return choice == "always"
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
