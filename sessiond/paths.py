"""Where things lie, from an environment mapping. Imported by the fast path of the client: `os` only."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from sessiond.errors import ConfigurationError

Environment = Mapping[str, str]


def user_home(env: Environment) -> str:
    """The user's home folder; raises ConfigurationError when HOME is unset or relative."""
    home = env.get("HOME", "")
    if not os.path.isabs(home):
        raise ConfigurationError(
            "HOME is not set to an absolute path; set HOME, or SESSIOND_HOME and the homes' variables"
        )
    return home


def _xdg(env: Environment, name: str, default: str) -> str:
    """An XDG base folder; a relative value is ignored, as the XDG specification asks."""
    value = env.get(name, "")
    return value if os.path.isabs(value) else os.path.join(user_home(env), default)


def state_dir(env: Environment) -> str:
    """The folder of the index and its locks."""
    own = env.get("SESSIOND_HOME", "")
    if own:
        if not os.path.isabs(own):
            raise ConfigurationError(f"SESSIOND_HOME is not an absolute path: {own!r}; give the whole path")
        return os.path.normpath(own)
    if sys.platform == "darwin" and not os.path.isabs(env.get("XDG_STATE_HOME", "")):
        return os.path.join(user_home(env), "Library", "Application Support", "sessiond")
    return os.path.join(_xdg(env, "XDG_STATE_HOME", ".local/state"), "sessiond")


def index_file(state: str) -> str:
    return os.path.join(state, "index.db")


def daemon_lock(state: str) -> str:
    return os.path.join(state, "daemon.lock")


def write_lock(state: str) -> str:
    return os.path.join(state, "write.lock")


def config_file(env: Environment) -> str:
    return os.path.join(_xdg(env, "XDG_CONFIG_HOME", ".config"), "sessiond", "config.toml")


def named_homes(env: Environment) -> list[tuple[str, str]]:
    """(app, home) for each home that the environment names explicitly, whether it exists or not."""
    found = []
    for app, name in (("claude-code", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")):
        value = env.get(name, "").strip()
        if value:
            found.append((app, os.path.abspath(value)))
    return found


def default_homes(env: Environment) -> list[tuple[str, str]]:
    """(app, home) for the vendors' own defaults, whether they exist or not."""
    home = user_home(env)
    return [
        ("claude-code", os.path.join(home, ".claude")),
        ("claude-code", os.path.join(_xdg(env, "XDG_CONFIG_HOME", ".config"), "claude")),
        ("codex", os.path.join(home, ".codex")),
    ]
