"""The name of a project folder, and whether a recorded directory is the one it stands for. Pure.

The name cannot be decoded, only checked (docs/formats/claude-code.md, "Project folders").
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize

NAME_UNITS = 200
"""A longer name is cut here and given a number that stands for the whole path."""

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")  # said the other way round it takes 20 ms to compile
_OTHER = re.compile(r"[^A-Za-z0-9]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
WORKTREES = "/.claude/worktrees/"


def folder_name(directory: str) -> str:
    """The name Claude Code gives to the project folder of a directory."""
    if not directory.isascii():
        directory = normalize("NFC", directory)
    name = _OTHER.sub("-", directory if directory.isascii() else _ASTRAL.sub("--", directory))
    return name if len(name) <= NAME_UNITS else f"{name[:NAME_UNITS]}-{_base36(abs(_hash(directory)))}"


def _hash(text: str) -> int:
    """H = h * 31 + unit over the UTF-16 code units, as a signed 32-bit number."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits


@lru_cache(maxsize=256)
def matching(directory: str, name: str) -> str | None:
    """The directory, or the one above it, whose project folder has this name; None when there is none."""
    while True:
        escaped = folder_name(directory)
        if escaped == name:
            return directory
        above = directory.rpartition("/")[0]
        if not above or (len(escaped) <= len(name) and len(escaped) < NAME_UNITS):
            return None
        directory = above


def repository(directory: str | None, worktree: tuple[str, str] | None) -> str | None:
    """The main checkout of a directory that is a worktree of it, else None.

    `worktree` is (path of the worktree, directory the session was in before), from a `worktree-state` record.
    """
    if not directory:
        return None
    main, inside, _ = directory.partition(WORKTREES)
    if inside and main:
        return main
    if worktree is None:
        return None
    path, original = worktree
    if not any(directory == known or directory.startswith(known + "/") for known in (path, original) if known):
        return None
    main, inside, _ = path.partition(WORKTREES)
    return (main if inside else original) or None
