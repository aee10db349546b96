"""Compressed rollouts, `.jsonl.zst`: folded as a stream in bounded memory, by whichever decoder there is."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from sessiond.jsonl import CUT, HEAD_BYTES, KEEP_FIRST_BYTES, KEEP_LAST_BYTES, BinaryFile
from sessiond.providers.codex.rollouts import fold_stream

MAGIC = b"\x28\xb5\x2f\xfd"
WINDOW_LOG = 25
"""A file that needs more than 2**25 bytes of memory to be unpacked is not: Codex's own need 2**21."""
OUTPUT_BYTES = 64 << 20
"""How much of one file is unpacked; what lies beyond is not looked at."""
_MODULES = ("compression.zstd", "backports.zstd")
"""The standard library from Python 3.14 on, and the extra `zstd` of this package."""
_LINE_BYTES = 8 << 20


class DamagedError(OSError):
    """The compressed data ends too soon or is no such data."""


class Unpacked:
    """The unpacked bytes of an open file, from its beginning."""

    def __init__(self, file: BinaryFile, decoder: Any) -> None:
        self._file = file
        self._decoder = decoder
        self.seek(0)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Back to the beginning, the only place there is."""
        self._file.seek(offset, whence)
        limit = {self._decoder.DecompressionParameter.window_log_max: WINDOW_LOG}
        self._stream = self._decoder.ZstdFile(self._file, options=limit)
        return 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes; raises DamagedError."""
        try:
            return bytes(self._stream.read(size))
        except (EOFError, self._decoder.ZstdError) as error:
            raise DamagedError(0, f"damaged: {error}") from error


def unpacked(file: BinaryFile) -> Unpacked | None:
    """None when no decoder is installed."""
    for name in _MODULES:
        try:
            return Unpacked(file, import_module(name))
        except ImportError:
            continue
    return None


def observe(file: BinaryFile, size: int, named_id: str | None) -> tuple[str | None, dict[str, Any], str | None]:
    """The thread's id, what the file says, and why it could not be read.

    Without a decoder the name, or the row in a database, must do.
    """
    if size == 0:
        return None, {}, None
    stream = unpacked(file)
    if stream is None:
        return None, {"sealed": 1}, None
    broken: list[str] = []
    own_id, facts = fold_stream(_blocks(stream, broken), named_id)
    return own_id, facts or {"sealed": 1}, broken[0] if broken else None


def _blocks(stream: Unpacked, broken: list[str]) -> Iterator[bytes]:
    """Whole lines in blocks of about 1 MiB; an over-long line as its two ends. Ends where the data is damaged."""
    left = OUTPUT_BYTES
    rest = b""
    while left > 0:
        try:
            block = stream.read(HEAD_BYTES)
        except DamagedError as error:
            broken.append(str(error.strerror))
            break
        if not block:
            break
        left -= len(block)
        cut = block.rfind(b"\n") + 1
        if cut:
            yield rest + block[:cut]
            rest = block[cut:]
        elif len(rest) < _LINE_BYTES:
            rest += block
        else:
            rest = rest[:KEEP_FIRST_BYTES] + CUT + block[-KEEP_LAST_BYTES:]
    if rest:
        yield rest
