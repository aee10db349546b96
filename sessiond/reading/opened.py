"""Opening a source so that nothing that lies there can do harm: a pipe, a device, a link, a file of another kind."""

import io
import os
import stat
import time
from collections.abc import Callable
from typing import NamedTuple

from sessiond.model import DATABASE, Fingerprint, Previous, Reading, Source, fingerprint_of
from sessiond.provider import Provider

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW

Use = Callable[[io.FileIO, int], Reading]
"""Given the open file and the size to trust."""


class Opened(NamedTuple):
    """What came of reading one source."""

    reading: Reading | None
    """None when it could not be read; `problem` says why."""
    fingerprint: Fingerprint
    """Of the file that was open; for a database as it was found."""
    problem: str = ""
    is_gone: bool = False
    """It was deleted between the look and the opening."""
    read_ms: int = 0
    """When it was opened, if it could be."""


def read(provider: Provider, source: Source, fingerprint: Fingerprint, previous: Previous | None) -> Opened:
    """What a provider makes of a source, continued from `previous`."""
    return read_safely(source, fingerprint, lambda file, size: provider.observe(source, file, size, previous))


def read_safely(source: Source, fingerprint: Fingerprint, use: Use) -> Opened:
    """Open the source and use it. Never blocks on what is no regular file, never raises for one file's sake."""
    read_ms = time.time_ns() // 1_000_000
    try:
        descriptor = os.open(source.path, _FLAGS)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError | NotADirectoryError)
        return Opened(None, fingerprint, error.strerror or str(error), gone)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return Opened(None, fingerprint, "not a regular file")
    with io.FileIO(descriptor) as file:
        if source.kind != DATABASE:
            fingerprint = fingerprint_of(status)
        try:
            return Opened(use(file, fingerprint.size), fingerprint, read_ms=read_ms)
        except OSError as error:
            return Opened(None, fingerprint, error.strerror or str(error))
        except Exception:  # one file must never stop the rest
            import logging  # noqa: PLC0415 - costs start-up, and this is a bug of ours

            logging.getLogger(__name__).exception("cannot read %s", source.path)
            return Opened(None, fingerprint, "internal error, see the log")
