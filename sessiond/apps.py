"""Every app, declared once. Pure data; imported by the fast path of the client, so it imports nothing.

What depends on which apps there are derives from this table: configuration keys, homes, the service's environment,
`--app` and its completion, `--expiring`, `doctor`, `history`. An app's own code is its package below `providers/`.
"""

from __future__ import annotations


class App:
    """One vendor's app, as far as it is known without a look at its files."""

    __slots__ = (
        "aliases", "default_homes", "home_variables", "label", "name", "part_variables", "provider", "retention_days",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        label: str,
        provider: str,
        *,
        default_homes: tuple[str, ...],
        home_variables: tuple[tuple[str, str], ...] = (),
        part_variables: tuple[str, ...] = (),
        aliases: tuple[str, ...] = (),
        retention_days: int | None = None,
    ) -> None:
        self.name = name
        """Stored and typed."""
        self.label = label
        """For people."""
        self.provider = provider
        """`module:Class`; imported on demand."""
        self.default_homes = default_homes
        """Where the app looks when no variable says so, the usual one first; `~/…` or `$XDG_…/…`."""
        self.home_variables = home_variables
        """(variable, folder below its value) that name a home; the folder is empty where the value is the home."""
        self.part_variables = part_variables
        """Variables that move a part of a home elsewhere."""
        self.aliases = aliases
        """Typed, too."""
        self.retention_days = retention_days
        """Days without use after which the app itself deletes a session; None: it never does."""


APPS = (
    App(
        "claude-code",
        "Claude Code",
        "sessiond.providers.claude_code:ClaudeCode",
        aliases=("claude",),
        home_variables=(("CLAUDE_CONFIG_DIR", ""),),
        default_homes=("~/.claude", "$XDG_CONFIG_HOME/claude"),
        retention_days=30,
    ),
    App(
        "codex",
        "Codex",
        "sessiond.providers.codex:Codex",
        home_variables=(("CODEX_HOME", ""),),
        default_homes=("~/.codex",),
        part_variables=("CODEX_SQLITE_HOME",),
    ),
)

NAMES = tuple([app.name for app in APPS])
TYPED = tuple([text for app in APPS for text in (app.name, *app.aliases)])
"""What is understood wherever an app is typed."""


def named(text: str) -> App:
    """The app with a name or an alias; raises KeyError when there is none."""
    for app in APPS:
        if text == app.name or text in app.aliases:
            return app
    raise KeyError(text)
