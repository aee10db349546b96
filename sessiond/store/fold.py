"""Folding for search: what two texts must have in common to count as equal. Pure; imported by the fast path."""

from __future__ import annotations


def fold(text: str) -> str:
    """NFKD, casefold, marks removed, one line: case- and accent-blind in every script."""
    if text.isascii():
        return text.lower().replace("\0", " ").replace("\n", " ").replace("\r", " ")
    from unicodedata import combining, normalize  # noqa: PLC0415 - ASCII needs no tables

    text = normalize("NFKD", normalize("NFKD", text).casefold())
    return "".join([c for c in text if not combining(c)]).replace("\0", " ").replace("\n", " ").replace("\r", " ")
