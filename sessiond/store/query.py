"""Words and filters as SQL. Pure; imported by the fast path of the client, so it imports next to nothing."""

from __future__ import annotations

from sessiond import columns
from sessiond.apps import NAMES
from sessiond.store.fold import fold

LISTED = "s.interactive = 1 AND s.resumable = 1 AND s.archived = 0 AND s.gone_ms IS NULL"
"""The rows of the default list: word for word the condition of the partial index `sessions_listed`."""
TIME = "strftime('%Y-%m-%dT%H:%M:%fZ', s.{} / 1000.0, 'unixepoch')"
"""RFC 3339 in UTC with milliseconds, for one of the columns in milliseconds."""
JSON = (
    "json_object("
    + ", ".join(
        [
            f"'{c}', json(iif(s.{c}, 'true', 'false'))"
            if c in columns.FLAGS
            else f"'{c}', {'CAST(s.path AS TEXT)' if c == 'path' else 's.' + c}"
            for c in columns.NAMES
        ]
        + [f"'{name}', {TIME.format(name + '_ms')}" for name in ("updated", "created")]
    )
    + ")"
)
"""One session as a JSON object, made by SQLite; `path` may hold bytes that are no UTF-8."""

LINE = (
    f"s.app, s.id, ifnull({TIME.format('updated_ms')}, ''), ifnull(s.branch, ''), ifnull(s.cwd, ''),"
    " ifnull(s.title, '')"
)
"""One session as it is printed into a pipe, every column text."""
TABLE = (
    "s.app, s.id, s.updated_ms, s.branch, s.cwd, s.title, s.created_ms, s.bytes, s.archived, s.gone_ms,"
    " s.interactive, s.resumable"
)
"""One session as a table for people needs it."""

ORDERS = {
    "updated": "s.updated_ms DESC, s.id",
    "created": "s.created_ms DESC, s.id",
    "size": "s.bytes DESC, s.id",
}


class Filters:
    """Which sessions are asked for. Everything is optional; times are milliseconds UTC."""

    __slots__ = (
        "all", "app", "archived", "branch", "expiring", "folders", "gone", "repos", "since_ms", "until_ms", "words",
    )  # fmt: skip

    def __init__(
        self,
        *,
        words: tuple[str, ...] = (),
        app: str | None = None,
        folders: tuple[str, ...] = (),
        repos: tuple[str, ...] = (),
        branch: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        expiring: tuple[tuple[str, int], ...] | None = None,
        archived: bool = False,
        gone: bool = False,
        all: bool = False,  # noqa: A002 - the option's own name
    ) -> None:
        self.words = words
        """Folded, none empty; each must be found in one column, different ones may be in different columns."""
        self.app = app
        self.folders = folders
        """Sessions in one of these folders or below it, or with one of `repos` as their repository."""
        self.repos = repos
        self.branch = branch
        self.since_ms = since_ms
        self.until_ms = until_ms
        self.expiring = expiring
        """(app, time): sessions of the app that were last active before it; None: whenever, of whatever app."""
        self.archived = archived
        self.gone = gone
        self.all = all

    @property
    def is_default_list(self) -> bool:
        return not (self.all or self.archived or self.gone)

    def unhidden(self) -> Filters:
        """The same question without the conditions of the default list."""
        return Filters(**{**{name: getattr(self, name) for name in self.__slots__}, "all": True})


def split(text: str) -> tuple[str, ...]:
    """The folded words of what was typed: split at white space, those that fold to nothing left out."""
    return tuple([w for w in map(fold, text.split()) if w])


class Condition:
    """A part of a WHERE clause with its parameters."""

    __slots__ = ("parameters", "sql")

    def __init__(self, sql: str, *parameters: object) -> None:
        self.sql = sql
        self.parameters = parameters


def conditions(filters: Filters) -> list[Condition]:
    """Everything but the words, over `sessions s`."""
    found = [Condition(scope(filters))]
    if filters.app is not None:
        found.append(Condition("s.app = ?", filters.app))
    if filters.folders or filters.repos:
        found.append(_below(filters.folders, filters.repos))
    if filters.branch is not None:
        found.append(Condition("s.branch = ?", filters.branch))
    if filters.since_ms is not None:
        found.append(Condition("s.updated_ms >= ?", filters.since_ms))
    if filters.until_ms is not None:
        found.append(Condition("s.updated_ms < ?", filters.until_ms))
    if filters.expiring is not None:
        found.append(_any_of([Condition("s.app = ? AND s.updated_ms < ?", *due) for due in filters.expiring]))
    return found


def scope(filters: Filters) -> str:
    """The conditions of the default list as far as they hold for this question."""
    if filters.is_default_list:
        return LISTED
    parts = ["s.archived = 1"] if filters.archived else []
    if filters.gone:
        parts.append("s.gone_ms IS NOT NULL")
    if not filters.all:
        parts.append("s.interactive = 1")
        if not filters.archived:
            parts.append("s.archived = 0")
        if not filters.gone:
            parts.append("s.gone_ms IS NULL")
    return " AND ".join(parts) or "1"


def _any_of(alternatives: list[Condition]) -> Condition:
    sql = " OR ".join([a.sql for a in alternatives]) or "0"
    return Condition(f"({sql})", *[p for a in alternatives for p in a.parameters])


def _below(folders: tuple[str, ...], repos: tuple[str, ...]) -> Condition:
    alternatives = [Condition("s.repo = ?", repo) for repo in repos]
    for folder in folders:
        inside = folder.rstrip("/") + "/"
        alternatives.append(Condition("s.cwd = ? OR (s.cwd >= ? AND s.cwd < ?)", folder, inside, inside[:-1] + "0"))
    return _any_of(alternatives)


def matters(word: str) -> bool:
    """Whether the word can tell sessions apart: a part of every app's name is found in each of them."""
    return not all(word in app for app in NAMES)


def phrase(text: str) -> str:
    """Text for FTS5, in which nothing is syntax."""
    return '"' + text.replace('"', '""') + '"'


def text_phrases(filters: Filters) -> str:
    """The FTS5 query for the longer words, and for what a filter's value implies; empty when there is none."""
    return " AND ".join([phrase(w) for w in indexed_words(filters)] + _filter_phrases(filters))


def indexed_words(filters: Filters) -> list[str]:
    """The words that are long enough for the trigram index."""
    return [w for w in filters.words if len(w) >= 3 and matters(w)]


def in_apps(word: str) -> list[Condition]:
    """Selects of the rows whose app's name holds a word."""
    return [Condition("SELECT session_no FROM sessions WHERE app = ?", app) for app in NAMES if word in app]


def in_ids(word: str) -> list[Condition]:
    """A select of the rows whose id holds a longer word, and of a few others; none when it can be in no id."""
    if not _may_be_in_id(word):
        return []
    parts = " AND ".join([phrase(word[at : at + 3]) for at in range(len(word) - 2)])
    return [Condition("SELECT rowid FROM ids_fts WHERE ids_fts MATCH ?", parts)]


def anywhere(word: str) -> list[Condition]:
    """Selects that look at every row for a word too short for an index."""
    found = [
        Condition(
            "SELECT session_no FROM search_text WHERE instr(title, ?) OR instr(cwd, ?) OR instr(branch, ?)",
            *[word] * 3,
        )
    ]
    found += in_apps(word)
    if _may_be_in_id(word):
        found.append(Condition("SELECT session_no FROM sessions WHERE id LIKE ? ESCAPE '!'", _pattern(word)))
    return found


def _may_be_in_id(word: str) -> bool:
    rest = word.replace("-", "").replace("_", "")
    return not rest or (rest.isascii() and rest.isalnum())


def _pattern(word: str) -> str:
    return "%" + word.replace("_", "!_") + "%"


def _filter_phrases(filters: Filters) -> list[str]:
    """What a filter's value implies for the folded text: the branch's name, the last part of the one folder."""
    found = []
    if filters.branch is not None and len(fold(filters.branch)) >= 3:
        found.append("branch : " + phrase(fold(filters.branch)))
    if len(filters.folders) == 1 and not filters.repos:
        last = fold(filters.folders[0].rstrip("/").rpartition("/")[2])
        if len(last) >= 3:
            found.append("cwd : " + phrase(last))
    return found


def holds(word: str, *, ids: bool) -> Condition:
    """Whether a row holds a word, by looking at it (at its id only if told): over `sessions s JOIN search_text t`."""
    tests = [f"s.app = '{app}'" for app in NAMES if word in app]
    tests += ["instr(t.title, ?)", "instr(t.cwd, ?)", "instr(t.branch, ?)"]
    parameters = [word] * 3
    if ids and _may_be_in_id(word):
        tests.append("s.id LIKE ? ESCAPE '!'")
        parameters.append(_pattern(word))
    return Condition(f"({' OR '.join(tests)})", *parameters)
