"""The options of `find` and `list`: one table, from which the fast path and the click command are both made."""

from __future__ import annotations

from sessiond.apps import NAMES, TYPED, named

COMMANDS = {
    "find": "Find sessions by words of their title, folder, branch, app or id.",
    "list": "List sessions, newest first.",
    "show": "Show everything that is known of one session.",
    "why": "Tell why something is listed as a session, or is not.",
    "log": "Print a session's conversation.",
    "resume": "Continue a session in its app.",
    "pick": "Choose a session interactively, then continue it.",
    "sql": "Ask the index in SQL, read only.",
    "path": "Print where the index is.",
    "status": "Tell whether the index is fresh and the daemon well.",
    "doctor": "Look for what is wrong, and say how to mend it.",
    "service": "Run the indexer in the background.",
    "archive": "Archive a session through its own app.",
    "unarchive": "Bring an archived session back through its own app.",
    "delete": "Delete a session through its own app.",
    "completion": "Print the completion script for a shell.",
}
"""Every command with what it does, so that neither help nor completion has to import them."""

COMPLETE_VARIABLE = "_SESSIONS_COMPLETE"
"""Set by the completion scripts when a shell asks what could come next."""

SORTS = ("updated", "created", "size")
COLORS = ("auto", "always", "never")


class Option:
    """One option; `kind` is flag, text, choice, app, count, moment or duration."""

    __slots__ = ("choices", "help", "kind", "metavar", "name")

    def __init__(self, name: str, kind: str, text: str, *, metavar: str = "", choices: tuple[str, ...] = ()) -> None:
        self.name = name
        self.kind = kind
        self.help = text
        self.metavar = metavar
        self.choices = choices

    @property
    def key(self) -> str:
        """The name as an identifier."""
        return self.name.replace("-", "_")

    def convert(self, text: str) -> str | int:
        """The value of what was typed; raises ValueError when it is none."""
        if self.kind in ("moment", "duration"):
            from sessions_cli import when  # noqa: PLC0415 - few ask for a time

            return when.moment_ms(text) if self.kind == "moment" else when.duration_ms(text)
        if self.kind == "count":
            if text.isascii() and text.isdecimal() and len(text) <= 9:
                return int(text)
            raise ValueError(f"{text!r} is not a number of rows; 0 means all")
        if self.choices and text not in self.choices:
            raise ValueError(f"{text!r} is not one of {', '.join(self.choices)}")
        return named(text).name if self.kind == "app" else text


FIND = (
    Option("app", "app", f"Only sessions of this app: {', '.join(NAMES)}.", metavar="APP", choices=TYPED),
    Option("cwd", "text", "Only sessions of this folder and the folders below it.", metavar="DIR"),
    Option("here", "flag", "The same as --cwd with the present folder."),
    Option("repo", "flag", "Only sessions of the present Git repository, all its worktrees included."),
    Option("branch", "text", "Only sessions on exactly this branch.", metavar="NAME"),
    Option("since", "moment", "Active at or after: 3d, a local date, or an RFC 3339 time.", metavar="WHEN"),
    Option("until", "moment", "Active before: 3d, a local date, or an RFC 3339 time.", metavar="WHEN"),
    Option("archived", "flag", "Only archived sessions."),
    Option("gone", "flag", "Only sessions whose files were deleted."),
    Option("expiring", "duration", "Only sessions that their app deletes within this time.", metavar="DURATION"),
    Option("all", "flag", "Also what is left out otherwise: archived, gone, non-interactive, not resumable."),
    Option("sort", "choice", "What comes first: the newest change, the newest session, the largest.", choices=SORTS),
    Option("limit", "count", "At most this many rows; 0 for all. A terminal shows 50 if not told.", metavar="N"),
    Option("json", "flag", "A JSON array of objects with every public column."),
    Option("color", "choice", "Whether to colour the table.", choices=COLORS),
    Option("no-refresh", "flag", "Answer from the index as it is, even when no daemon keeps it up to date."),
)
