"""config.toml: every key optional, an unknown key or a wrong type is an error that names it."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from sessiond import apps, paths
from sessiond.errors import ConfigurationError


class Config(NamedTuple):
    """The settings of config.toml with their defaults."""

    homes: Mapping[str, tuple[str, ...]] = {}
    """App -> more homes of it."""
    retention_days: Mapping[str, int] = {}
    """App -> days after which it deletes a session itself, where that is not what `apps` says."""
    gone_days: int = 400
    """Days after which the row of a vanished session is dropped."""
    rescan_s: int = 60
    """Seconds between full rescans of a running daemon."""

    def retention_lines(self) -> str:
        """`app<TAB>days` lines for the apps that delete sessions, the form in which `meta` keeps them."""
        days = {app.name: self.retention_days.get(app.name, app.retention_days) for app in apps.APPS}
        return "\n".join(f"{app}\t{n}" for app, n in days.items() if n is not None)


class Homes(NamedTuple):
    """The homes to index."""

    by_app: Mapping[str, tuple[str, ...]] = {}
    """App -> its homes, absolute, each once, those that the environment names first."""
    parts: Mapping[str, str] = {}
    """Variable -> folder, absolute, for what the environment moves out of a home."""

    def of(self, app: str) -> tuple[str, ...]:
        return tuple(self.by_app.get(app, ()))

    def lines(self) -> str:
        """`app<TAB>home` lines, the form in which `meta` keeps them for the client."""
        return "\n".join(f"{app}\t{home}" for app in self.by_app for home in self.of(app))


_LIMITS = {"gone_days": (1, 100_000), "rescan_s": (1, 86_400)}
_RETENTION_LIMITS = (1, 100_000)


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
        return _number(file, key, value, *_LIMITS[key])
    if key == "homes":
        return {app: _folders(file, f"homes.{app}", v, user_home) for app, v in _by_app(file, key, value).items()}
    if key == "retention_days":
        return {
            app: _number(file, f"retention_days.{app}", days, *_RETENTION_LIMITS)
            for app, days in _by_app(file, key, value).items()
        }
    raise ConfigurationError(f"{file}: unknown key {key!r}; {_instead(key)}")


def _instead(key: str) -> str:
    """What to write for a key of before there was a table an app, else where the keys are."""
    for table in ("homes", "retention_days"):
        app = key.removesuffix(f"_{table}")
        if app != key and app in apps.TYPED:
            return f"it is now the key {apps.named(app).name!r} of the table [{table}]"
    return "the keys are in docs/configuration.md"


def _by_app(file: str, table: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{file}: {table} must be a table, [{table}], with a key for each app")
    for app in value:
        if app not in apps.NAMES:
            raise ConfigurationError(f"{file}: unknown app {app!r} in [{table}]; the apps are {', '.join(apps.NAMES)}")
    return value


def _number(file: str, key: str, value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ConfigurationError(f"{file}: {key} must be a whole number from {low} to {high}")
    return value


def _folders(file: str, key: str, value: Any, user_home: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigurationError(f"{file}: {key} must be a list of folders")
    return tuple(_absolute(file, key, item, user_home) for item in value)


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
    found: dict[str, dict[str, str]] = {app: {} for app in apps.NAMES}
    configured = [(app, home) for app, listed in config.homes.items() for home in listed]
    for app, home in [*paths.named_homes(env), *paths.default_homes(env), *configured]:
        found[app].setdefault(os.path.realpath(home), _nameable(home))
    return Homes({app: tuple(homes.values()) for app, homes in found.items()}, paths.moved_parts(env))
