"""config.toml: every key optional, an unknown key or a wrong type is an error that names it."""

import os
from typing import Any, NamedTuple

from sessiond import paths
from sessiond.errors import ConfigurationError


class Config(NamedTuple):
    """The settings of config.toml with their defaults."""

    claude_homes: tuple[str, ...] = ()
    codex_homes: tuple[str, ...] = ()
    gone_days: int = 400
    """Days after which the row of a vanished session is dropped."""
    claude_retention_days: int = 30
    """Claude Code's `cleanupPeriodDays`, which we may not read; used by `--expiring`."""
    rescan_s: int = 60
    """Seconds between full rescans of a running daemon."""


class Homes(NamedTuple):
    """The homes to index, absolute, each once, the default homes first."""

    claude_code: tuple[str, ...]
    codex: tuple[str, ...]
    codex_sqlite: tuple[str, ...]
    """Folders named by CODEX_SQLITE_HOME, which can hold Codex's state database beside its homes."""

    def lines(self) -> str:
        """`app<TAB>home` lines, the form in which `meta` keeps them for the client."""
        return "\n".join([f"claude-code\t{h}" for h in self.claude_code] + [f"codex\t{h}" for h in self.codex])


_LIMITS = {"gone_days": (1, 100_000), "claude_retention_days": (1, 100_000), "rescan_s": (1, 86_400)}


def load(env: paths.Environment) -> Config:
    """The configuration, defaults when there is no file; raises ConfigurationError when it cannot be used."""
    file = paths.config_file(env)
    try:
        with open(file, "rb", opener=_without_waiting) as stream:
            text = stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return Config()
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}; mend its permissions or remove it") from error
    import tomllib  # noqa: PLC0415 - costs start-up, and most people have no config.toml

    try:
        table = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not valid TOML: {error}; correct it or remove it") from error
    return Config(**{key: _value(file, key, value, paths.user_home(env)) for key, value in table.items()})


def _without_waiting(path: str, flags: int) -> int:
    """Open for reading; a pipe, which nobody may ever write to, counts as empty."""
    return os.open(path, flags | os.O_NONBLOCK)


def _value(file: str, key: str, value: Any, user_home: str) -> Any:
    if key in _LIMITS:
        low, high = _LIMITS[key]
        if type(value) is not int or not low <= value <= high:
            raise ConfigurationError(f"{file}: {key} must be a whole number from {low} to {high}")
        return value
    if key in ("claude_homes", "codex_homes"):
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise ConfigurationError(f"{file}: {key} must be a list of folders")
        return tuple(_absolute(file, key, item, user_home) for item in value)
    raise ConfigurationError(f"{file}: unknown key {key!r}; the keys are in docs/configuration.md")


def _absolute(file: str, key: str, folder: str, user_home: str) -> str:
    if folder == "~" or folder.startswith("~/"):
        folder = user_home + folder[1:]
    if not os.path.isabs(folder):
        raise ConfigurationError(f"{file}: {key} holds {folder!r}, which is not an absolute path")
    return os.path.normpath(folder)


def _nameable(home: str) -> str:
    """The home itself; one whose name is no UTF-8 can stand in no column and no message."""
    try:
        home.encode()
    except UnicodeEncodeError:
        raise ConfigurationError(f"the home {home!r} is not named in UTF-8; reach it by a link that is") from None
    return home


def homes(config: Config, env: paths.Environment) -> Homes:
    """Homes from the configuration, the environment and the vendors' defaults.

    A default is always among them, even when missing: it may appear later. The same folder reached by two spellings
    counts once.
    """
    found: dict[str, dict[str, str]] = {"claude-code": {}, "codex": {}}
    configured = [("claude-code", h) for h in config.claude_homes] + [("codex", h) for h in config.codex_homes]
    for app, home in [*paths.named_homes(env), *paths.default_homes(env), *configured]:
        found[app].setdefault(os.path.realpath(home), _nameable(home))
    sqlite = env.get("CODEX_SQLITE_HOME", "").strip()
    return Homes(
        tuple(found["claude-code"].values()),
        tuple(found["codex"].values()),
        (os.path.abspath(sqlite),) if sqlite else (),
    )
