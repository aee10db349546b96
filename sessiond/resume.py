"""What may be kept when a session is resumed, what is withheld and what to warn of. Pure (docs/resume.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision, before a vendor's argument list is made of it."""

    folder: str | None
    model: str | None = None
    model_provider: str | None = None
    effort: str | None = None
    approval: str | None = None
    sandbox: str | None = None
    fork: bool = False
    warnings: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    withheld: Mapping[str, str] = field(default_factory=dict)
    """Setting -> why the recorded value is not passed."""


@dataclass(frozen=True, slots=True)
class Command:
    """What is executed: no shell is involved."""

    argv: tuple[str, ...]
    environment: Mapping[str, str | None]
    """Changes to the environment; None unsets."""
