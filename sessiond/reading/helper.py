"""A second process that reads new files while this one stores what they say.

Reading is two thirds of a first index, which takes a third less where two cores are free. The helper sees only what is
read without anything known before. What it has not told when it ends, for whatever reason, is read without it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from select import select
from typing import IO, Any

from sessiond import memory
from sessiond.config import Homes
from sessiond.jsonl import HEAD_BYTES
from sessiond.model import DATABASE, Fingerprint
from sessiond.provider import Provider, load_all
from sessiond.reading.opened import Opened, read

Item = tuple[str, Fingerprint]
Answer = tuple[str, Fingerprint, Opened | None]
"""None: not read yet."""

FILE_MS, MEBIBYTE_MS = 0.25, 1.3
"""What reading costs, about: a file, and each mebibyte of its head."""
WORTH_MS = 300
"""Reading that takes less is done before a helper could help."""
BATCH = 12
"""Files asked for at once: with paths of any length they fit into a pipe of the usual 64 KiB."""
ASKED_MAX = 2
WAIT_S = 60.0
"""A helper that says nothing for so long is given up."""
_COMMAND = (
    "import json, sys; sys.path[:], homes = json.loads(sys.argv[1]);"
    " from sessiond.reading.helper import serve; serve(homes)"
)
"""Isolated, it imports what this process would, whatever the environment or the present folder hold."""


def is_worth_it(items: Sequence[Item]) -> bool:
    """Whether there is so much to read that a helper shortens it, and a core for it."""
    size = sum(min(fingerprint.size, HEAD_BYTES) for _, fingerprint in items)
    return len(items) * FILE_MS + size / (1 << 20) * MEBIBYTE_MS > WORTH_MS and _cores() > 1 and bool(sys.executable)


def _cores() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shared(items: Sequence[Item], homes: Homes) -> Iterator[Answer]:
    """All items, nearly in their order: those that the helper has read, and between them those it was not asked for."""
    left = deque(items)
    try:
        helper = _Helper(homes)
    except OSError:
        helper = None
    with helper or contextlib.nullcontext():
        while left or (helper is not None and helper.asked):
            answers: list[Answer] = []
            if helper is not None:
                try:
                    while left and len(helper.asked) < ASKED_MAX:
                        helper.ask([left.popleft() for _ in range(min(BATCH, len(left)))])
                    answers = helper.answers(0 if left else WAIT_S)
                except (OSError, EOFError):
                    left.extendleft(item for batch in reversed(helper.asked) for item in reversed(batch))
                    helper = None
            yield from answers or [(*left.popleft(), None)]


class _Helper:
    """The other process, as seen from this one. Raises OSError or EOFError when it is gone."""

    def __init__(self, homes: Homes) -> None:
        self.asked: deque[list[Item]] = deque()
        """Batches that have not been answered."""
        asked, to = os.pipe()
        try:
            come, told = os.pipe()
        except OSError:
            os.close(asked)
            os.close(to)
            raise
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-IB", "-c", _COMMAND, json.dumps([[folder for folder in sys.path if folder], homes])],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, asked, 0), (os.POSIX_SPAWN_DUP2, told, 1)],
                setsigmask=[signal.SIGINT],  # from the terminal it goes to both; this process decides
            )
        except OSError:
            os.close(to)
            os.close(come)
            raise
        finally:
            os.close(asked)
            os.close(told)
        os.set_blocking(to, False)
        self._to, self._from = open(to, "wb", 0), open(come, "rb", 0)  # noqa: SIM115 - closed at the end

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._to.close()
        self._from.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def ask(self, batch: list[Item]) -> None:
        self.asked.append(batch)
        _send(self._to, batch, WAIT_S)

    def answers(self, wait_s: float) -> list[Answer]:
        """What it has told since; nothing when there is nothing yet, an error when there is nothing after a wait."""
        if not select([self._from], [], [], wait_s)[0]:
            if wait_s:
                raise TimeoutError
            return []
        told: list[Opened | None] = _received(self._from, WAIT_S)
        return [
            (path, fingerprint, _sharing(opened, fingerprint))
            for (path, fingerprint), opened in zip(self.asked.popleft(), told, strict=True)
        ]


def _sharing(opened: Opened | None, fingerprint: Fingerprint) -> Opened | None:
    """The same, without a second copy of the fingerprint: ten thousand of them are a megabyte."""
    if opened is not None and opened.fingerprint == fingerprint:
        return opened._replace(fingerprint=fingerprint)
    return opened


def serve(homes: tuple[Any, Any]) -> None:
    """Read what is asked for on standard input until it ends."""
    import gc  # noqa: PLC0415 - the other process needs none of it

    gc.disable()
    memory.keep_freed()
    providers = load_all(Homes(*homes))
    with open(0, "rb", 0, closefd=False) as asked, open(os.dup(1), "wb", 0) as told:
        os.dup2(2, 1)
        with contextlib.suppress(EOFError, BrokenPipeError):
            while True:
                batch: list[Item] = _received(asked)
                _send(told, [_read(providers, *item) for item in batch])


def _read(providers: Sequence[Provider], path: str, fingerprint: Fingerprint) -> Opened | None:
    for provider in providers:
        source = provider.claim(path)
        if source is not None and source.kind != DATABASE:
            return read(provider, source, fingerprint, None)
    return None


def _send(file: IO[bytes], value: object, wait_s: float | None = None) -> None:
    """Write one value; TimeoutError when nothing more of it is taken for so long, which a file must not block for."""
    import pickle  # noqa: PLC0415

    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    rest = memoryview(len(data).to_bytes(4, "big") + data)
    while rest:
        if not select([], [file], [], wait_s)[1]:
            raise TimeoutError
        rest = rest[file.write(rest) or 0 :]


def _received(file: IO[bytes], wait_s: float | None = None) -> Any:
    """One value; TimeoutError when nothing more of it comes for so long."""
    import pickle  # noqa: PLC0415

    size = int.from_bytes(_exactly(file, 4, wait_s), "big")
    return pickle.loads(_exactly(file, size, wait_s))  # noqa: S301 - from our own child


def _exactly(file: IO[bytes], size: int, wait_s: float | None) -> bytes:
    data = b""
    while len(data) < size:
        if not select([file], [], [], wait_s)[0]:
            raise TimeoutError
        part = file.read(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data
