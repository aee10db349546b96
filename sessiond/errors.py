"""What can go wrong in a way that the user can mend: one class each, with an exit code and a next step.

Exit codes are a public interface (docs/cli.md). 1 (nothing found) and 2 (usage) are no errors of ours.
"""

from __future__ import annotations

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, by the convention of shells."""


class SessiondError(Exception):
    """One line for the user: what happened, to which file, and what to do next."""

    exit_code = 1


class NoIndexError(SessiondError):
    exit_code = 3


class SchemaError(SessiondError):
    """The index was made by another version of sessiond."""

    exit_code = 4


class NoSuchSessionError(SessiondError):
    exit_code = 5


class AmbiguousIdError(SessiondError):
    exit_code = 6


class FolderGoneError(SessiondError):
    exit_code = 7


class AlreadyRunningError(SessiondError):
    exit_code = 8


class DegradedError(SessiondError):
    """The answer may be incomplete or out of date, or the daemon is not well."""

    exit_code = 9


class RefusedError(SessiondError):
    """A check before resuming failed, or a question had no terminal to be asked on."""

    exit_code = 10


class UnreadableLogError(SessiondError):
    """A session has no log, or one that cannot be read here."""

    exit_code = 10


class ConfigurationError(SessiondError):
    """The configuration, the state folder or the environment cannot be used as they are."""

    exit_code = 11


class IndexUnavailableError(SessiondError):
    """The index is locked, full, read-only or damaged; `retry` says whether waiting can help."""

    exit_code = 9

    def __init__(self, message: str, *, retry: bool, damaged: bool = False) -> None:
        super().__init__(message)
        self.retry = retry
        self.damaged = damaged
