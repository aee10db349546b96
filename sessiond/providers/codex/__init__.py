"""Codex: rollouts, state databases and names, read without touching a byte (docs/formats/codex.md)."""

from sessiond.providers.codex.provider import Codex

__all__ = ["Codex"]
