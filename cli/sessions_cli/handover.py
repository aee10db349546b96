"""Becoming a vendor's program: the last thing that this process does."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from typing import NoReturn

from sessiond.errors import FolderGoneError, RefusedError
from sessiond.resume import Command


def become(command: Command, program: str, folder: str | None, env: Mapping[str, str]) -> NoReturn:
    """Replace this process by the program (an absolute path) in the folder; None stays where we are."""
    environment = dict(env)
    for name, value in command.environment.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    if folder is not None:
        try:
            os.chdir(folder)
        except OSError as error:
            raise FolderGoneError(
                f"folder {folder} cannot be entered: {error.strerror}; bring it back first"
            ) from error
        environment["PWD"] = folder
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    _restore_signals()
    try:
        os.execve(program, list(command.argv), environment)  # noqa: S606 - no shell is what is wanted
    except OSError as error:
        raise RefusedError(f"{program} cannot be started: {error.strerror}; install {command.argv[0]} anew") from error


def _restore_signals() -> None:
    """Python ignores these at its start, and a program started by exec would inherit that."""
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
