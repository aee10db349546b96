"""What a provider is, all that the program knows of one vendor's app; and loading one on demand."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from sessiond import apps
from sessiond.config import Homes
from sessiond.jsonl import BinaryFile
from sessiond.model import (
    TITLE_CHARS,
    Excluded,
    Fingerprint,
    Observation,
    Previous,
    Reading,
    Reason,
    Session,
    Source,
    Walk,
)

if TYPE_CHECKING:
    from sessiond.resume import Cli, Command, Plan, Stated


class Root(NamedTuple):
    """A folder to watch."""

    app: str
    home: str
    path: str
    recursive: bool
    wanted: Callable[[str], bool] | None = None
    """For a flat root: whether a changed name in it matters. None: every name does."""


class LogFile(NamedTuple):
    """A session file on disk, known without opening it."""

    app: str
    path: str
    id: str
    date: str
    """Local date `YYYY-MM-DD` by which it is filed, from the folder or the name, else from its mtime."""


class Git(NamedTuple):
    """What a log's opening says of the repository at the start."""

    commit: str | None = None
    branch: str | None = None
    url: str | None = None
    """Of the remote `origin`, without the credential that it may have been recorded with."""


class Metadata(NamedTuple):
    """How a log opens. Builds and generations differ in what they write: every field is optional."""

    id: str | None = None
    timestamp: str | None = None
    """As it was recorded, RFC 3339."""
    cwd: str | None = None
    originator: str | None = None
    cli_version: str | None = None
    source: object = None
    model_provider: str | None = None
    forked_from: str | None = None
    git: Git | None = None
    raw: Mapping[str, Any] = MappingProxyType({})
    """What was recorded and is not named above."""


class Entry(NamedTuple):
    """One record of a log."""

    timestamp: str | None
    kind: str | None
    """The vendor's word for what the record is; None where records have no envelope."""
    payload: Any
    """What the envelope holds; the whole record where there is none."""


class Said(NamedTuple):
    """One thing that was said."""

    role: str
    """`user` or `assistant`."""
    text: str
    timestamp: str | None


class Dialogue(Protocol):
    """How one vendor's records are read as a conversation; all functions are pure."""

    def is_log_path(self, path: str) -> bool:
        """Whether a file with this name in this place is a log of the app, wherever its home may be."""

    def records(self, file: BinaryFile) -> Iterator[dict[str, Any]]:
        """Every record of one log, in order, in constant memory."""

    def opening(self, record: dict[str, Any]) -> Metadata | None:
        """What a record says of the whole log; None when it is no opening one."""

    def entry(self, record: dict[str, Any]) -> Entry: ...

    def said(self, entry: Entry) -> Said | None:
        """What a person or the assistant says in a record; None for everything else."""


class Provider(Protocol):
    """One vendor's app over its homes. All knowledge of the vendor's files is behind this.

    Providers derive from it, so what most vendors have in common is here.
    """

    app: str
    reader_version: int
    """Stored with each source; raise it when a rule changes, and every source is read anew."""

    @property
    def cli(self) -> "Cli":
        """The vendor's program that continues its sessions."""

    @classmethod
    def over(cls, homes: Homes) -> Self: ...

    def roots(self) -> list[Root]:
        """What to watch; whether it exists or not."""

    def discover(self, walk: Walk, below: str | None = None) -> Iterator[tuple[str, Fingerprint]]:
        """Every source on disk now (below one folder if given), by path; never into side folders, nothing is opened.

        A folder that cannot be listed goes into `walk.unreadable`, a listed one into `walk.directories`.
        """

    def claim(self, path: str) -> Source | None:
        """The source that a changed path belongs to. Pure: the file need not exist."""

    def fingerprint(self, source: Source) -> Fingerprint:
        """The source's state on disk now; raises OSError as `os.stat` does."""

    def observe(self, source: Source, file: BinaryFile, size: int, previous: Previous | None) -> Reading:
        """What the open file says, continued from `previous` where that is possible; never raises for its content."""

    def fill(self, source: Source, file: BinaryFile, previous: Previous, budget_bytes: int) -> Reading:
        """The same facts with what the gap adds to them: names and moves far from both ends, at most once."""

    def merge(self, observations: Sequence[Observation]) -> Session | Excluded:
        """What all observations of one id amount to. Pure."""

    def says(self, reason: Reason) -> str:
        """Why something is not listed, in words that name the vendor's own things."""
        return reason

    def passed_over(self, path: str) -> Reason | None:  # noqa: ARG002 - most have nothing to tell
        """Why a file in a home is none of its sources, where its place tells. Pure."""
        return None

    def start_folder(self, session: Session, stated: Sequence["Stated"]) -> str | None:  # noqa: ARG002
        """The folder that the vendor's program has to be started in to continue a session. Pure."""
        return session.cwd

    def logs(self, after: str | None, before: str | None) -> Iterator[LogFile]:
        """Session files newest first, by local date: from `after` on, up to but not including `before`."""

    def resume(self, session: Session, plan: "Plan") -> "Command":
        """The vendor's argument list and environment changes for a plan. Pure."""


def load(homes: Homes, app: str) -> Provider:
    """The provider of one app over its homes; its module is imported only now."""
    module, name = apps.named(app).provider.split(":")
    provider: Provider = getattr(import_module(module), name).over(homes)
    return provider


def load_all(homes: Homes) -> list[Provider]:
    return [load(homes, app) for app in apps.NAMES]


def load_dialogue(app: str) -> Dialogue:
    """How the records of one app's logs are read as a conversation."""
    module: Dialogue = import_module(apps.named(app).provider.partition(":")[0] + ".log")
    return module


def one_line(text: object, limit: int = TITLE_CHARS) -> str | None:
    """Text for a title: one line, white space collapsed, cut; None when nothing is left or it is no text.

    NULs and half surrogate pairs, which SQLite refuses or cuts at, are taken out.
    """
    if not isinstance(text, str):
        return None
    text = " ".join(text[: limit * 20].replace("\0", " ").split())[:limit].rstrip()
    return _storable(text) or None


def plain(value: object) -> str | None:
    """A scalar fact as it was recorded: a non-empty string that SQLite can store, else None."""
    if not isinstance(value, str):
        return None
    return _storable(value.replace("\0", "")) or None


def _storable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def time_ms(value: object) -> int | None:
    """An RFC 3339 time as milliseconds UTC, or None when it is none."""
    if not isinstance(value, str) or not 19 <= len(value) <= 40:
        return None
    from datetime import UTC, datetime  # noqa: PLC0415 - only where times are read

    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000 + 0.5) if moment.year > 1970 else None
