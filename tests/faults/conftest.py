"""Every fault happens to real processes over real files, and the sources are as they were before."""

from __future__ import annotations

import sys

from tests.kit.fixtures import daemon, world

__all__ = ["daemon", "world"]

if not sys.platform.startswith("linux"):
    collect_ignore_glob = ["*"]
