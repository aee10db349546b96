"""The table of apps. A new app is one module, one line here and one folder of fixtures."""

from __future__ import annotations

from importlib import import_module

from sessiond.config import Homes
from sessiond.providers.base import Dialogue, Provider

PROVIDERS = {
    "claude-code": "sessiond.providers.claude_code:ClaudeCode",
    "codex": "sessiond.providers.codex:Codex",
}


def load(homes: Homes, app: str) -> Provider:
    """The provider of one app over its homes; its module is imported only now."""
    module, name = PROVIDERS[app].split(":")
    provider: Provider = getattr(import_module(module), name).over(homes)
    return provider


def load_all(homes: Homes) -> list[Provider]:
    return [load(homes, app) for app in PROVIDERS]


def load_dialogue(app: str) -> Dialogue:
    """How the records of one app's logs are read as a conversation."""
    module: Dialogue = import_module(PROVIDERS[app].partition(":")[0] + ".dialogue")
    return module
