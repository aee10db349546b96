from __future__ import annotations

from tests.kit.fixtures import daemon, world

__all__ = ["daemon", "world"]
