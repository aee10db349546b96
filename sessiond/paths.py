"""Where things lie, from an environment mapping. Imported by the fast path of the client: `os` only."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from sessiond.apps import APPS, App
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


XDG_DEFAULTS = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"}


def _xdg(env: Environment, name: str) -> str:
    """An XDG base folder; a relative value is ignored, as the XDG specification asks."""
    value = env.get(name, "")
    return value if os.path.isabs(value) else os.path.join(user_home(env), XDG_DEFAULTS[name])


def state_dir(env: Environment) -> str:
    """The folder of the index and its locks."""
    own = env.get("SESSIOND_HOME", "")
    if own:
        if not os.path.isabs(own):
            raise ConfigurationError(f"SESSIOND_HOME is not an absolute path: {own!r}; give the whole path")
        return os.path.normpath(own)
    if sys.platform == "darwin" and not os.path.isabs(env.get("XDG_STATE_HOME", "")):
        return os.path.join(user_home(env), "Library", "Application Support", "sessiond")
    return os.path.join(_xdg(env, "XDG_STATE_HOME"), "sessiond")


def index_file(state: str) -> str:
    return os.path.join(state, "index.db")


def daemon_lock(state: str) -> str:
    return os.path.join(state, "daemon.lock")


def write_lock(state: str) -> str:
    return os.path.join(state, "write.lock")


def config_file(env: Environment) -> str:
    return os.path.join(_xdg(env, "XDG_CONFIG_HOME"), "sessiond", "config.toml")


def named_homes(env: Environment) -> list[tuple[str, str]]:
    """(app, home) for each home that the environment names explicitly, whether it exists or not."""
    found = []
    for app in APPS:
        for variable, inside in app.home_variables:
            value = env.get(variable, "").strip()
            if value:
                found.append((app.name, os.path.abspath(os.path.join(value, inside))))
    return found


def default_homes(env: Environment) -> list[tuple[str, str]]:
    """(app, home) for the vendors' own defaults, whether they exist or not."""
    return [(app.name, _expanded(env, home)) for app in APPS for home in app.default_homes]


def usual_home(app: App, user_home: str) -> str:
    """Where the app looks when none of its variables is set."""
    return os.path.join(user_home, app.default_homes[0].removeprefix("~/"))


def moved_parts(env: Environment) -> dict[str, str]:
    """Variable -> value as an absolute path, for each one set that moves a part of a home elsewhere."""
    named = {variable: env.get(variable, "").strip() for app in APPS for variable in app.part_variables}
    return {variable: os.path.abspath(value) for variable, value in named.items() if value}


def _expanded(env: Environment, home: str) -> str:
    base, _, rest = home.partition("/")
    return os.path.join(user_home(env) if base == "~" else _xdg(env, base[1:]), rest)
