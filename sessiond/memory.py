"""What glibc does with memory that was freed; other C libraries need none of it."""

import contextlib

KEEP_BYTES = 2 << 20


def keep_freed() -> None:
    """Let what one file's bytes took stay for the next file's.

    glibc gives memory back when twice the size of the largest block ever freed lies free. With the blocks that are
    read, every head of a large file was paid for by five hundred page faults, four times the cost of reading it.
    """
    bytes(KEEP_BYTES)  # never touched, so it costs nothing


def give_back() -> None:
    """Return what scans have freed to the system."""
    import ctypes  # noqa: PLC0415 - the watching library has loaded it by now

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
