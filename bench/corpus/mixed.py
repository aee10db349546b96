"""The mixed home: about a thousand sessions of every kind, with its right answers beside it."""

from __future__ import annotations

from bench.corpus import mixed_claude, mixed_codex
from bench.corpus.answers import Answers


def make(home: str) -> None:
    answers = Answers()
    mixed_claude.make(home, answers)
    mixed_codex.make(home, answers)
    answers.save(home)
