"""Answering one question fast, whatever it asks: which index to walk, and when to look at rows one by one.

Few candidates (a rare word) are looked at one by one. Of a common word the newest sessions hold enough, so these are
walked, newest first, up to a bound. Only what is left after both takes the long way.
"""

from __future__ import annotations

from sessiond.store import query
from sessiond.store.query import Condition, Filters

FEW = 3000
"""So many candidates are looked at one by one."""
NEWEST = 3000
"""How many of the newest sessions are walked before the whole index is."""
SHORT_WALK = 6000
"""Looking at so many rows costs no more than collecting a common word's candidates."""
COUNT_LIMIT = 1000
"""Hidden sessions are counted up to this."""
HIDDEN = f"NOT ({query.LISTED})"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessiond.store.reader import Reader

Row = tuple[object, ...]


class Search:
    """One question, with what is known of its cost."""

    def __init__(self, reader: Reader, filters: Filters, *, order: str = "updated", limit: int | None = None) -> None:
        """The first `limit` answers in order are asked for; None means all."""
        self._reader = reader
        self._filters = filters
        self._order = order
        self._limit = limit
        self._words = [w for w in filters.words if query.matters(w)]
        self._conditions = query.conditions(filters)
        phrases = query.text_phrases(filters)
        self._texts = (
            Condition("SELECT rowid FROM sessions_fts WHERE sessions_fts MATCH ?", phrases) if phrases else None
        )
        self._elsewhere: list[Condition] = []
        self._not_in_ids: set[str] = set()
        self._are_few = self._texts is not None and self._count_candidates(self._texts, self._few()) <= self._few()
        self._holds = [query.holds(w, ids=w not in self._not_in_ids) for w in self._words]

    def _few(self) -> int:
        """So many candidates are looked at one by one.

        More are not when a walk, newest first, is likely to meet `limit` answers sooner: evenly spread ones it meets
        after `limit * all sessions / candidates` rows. With each word a candidate costs the index as much again.
        """
        if not self._limit or self._order != "updated":
            return FEW
        ((total,),) = self._reader.rows("SELECT count(*) FROM sessions")
        wanted = self._limit * int(str(total))
        return min(FEW, max(wanted // NEWEST, int(wanted**0.5 / max(1, len(self._words)))))

    def _count_candidates(self, texts: Condition, most: int) -> int:
        """How many rows the indexes name, counted up to `most` + 1 each; selects that name none are forgotten."""
        total = self._count(texts, most)
        for word in query.indexed_words(self._filters):
            for select in query.in_apps(word) + query.in_ids(word):
                count = self._count(select, most)
                if count:
                    self._elsewhere.append(select)
                    total += count
                elif "ids_fts" in select.sql:
                    self._not_in_ids.add(word)
        return total

    def find(self, columns: str) -> list[Row]:
        """The answers; `columns` is SQL over `sessions s`."""
        if self._texts is not None and self._are_few:
            return self._among(self._indexed(self._texts), columns)
        if self._filters.is_default_list and self._is_short(query.LISTED):
            return self._walk(columns)
        if self._order == "updated" and self._limit:
            found = self._newest(columns, self._limit)
            if found is not None:
                return found
        if self._texts is not None:
            return self._among(self._indexed(self._texts), columns)
        if self._words:
            return self._among(self._scanned(), columns)
        return self._walk(columns)

    def hidden(self, *, truncated: bool) -> int | None:
        """How many more answers there are without the conditions of the default list, counted up to COUNT_LIMIT + 1.

        None when that is not worth the time: for a common word of which not even the listed answers are all shown.
        """
        scope = query.scope(self._filters)
        if self._filters.all:
            return 0
        if truncated and self._words and not self._are_few:
            return None
        outside = [Condition(f"NOT ({scope})"), *query.conditions(self._filters.unhidden())]
        if self._texts is not None and self._are_few:
            return self._count_among(self._indexed(self._texts), outside)
        if self._filters.is_default_list and (not self._words or self._is_short(HIDDEN)):
            return self._count_joined(Condition("sessions s INDEXED BY sessions_hidden" + self._join()), outside)
        if self._texts is not None:
            return self._count_among(self._indexed(self._texts), outside)
        if self._words:
            return self._count_among(self._scanned(), outside)
        return self._count_joined(Condition("sessions s"), outside)

    # -- sources of candidates -----------------------------------------------------------------------------------------

    def _indexed(self, texts: Condition) -> tuple[Condition, list[Condition]]:
        """The rows that the indexes name, as `c`, and what is still to be checked of them.

        The trigram index is right about the longer words. What is found elsewhere is checked here for every word.
        """
        left = [h for w, h in zip(self._words, self._holds, strict=True) if len(w) < 3]
        if not self._elsewhere:
            return texts, left
        others = _union(self._elsewhere)
        checked = Condition(
            f"SELECT e.rowid FROM ({others.sql}) e CROSS JOIN sessions s ON s.session_no = e.rowid"  # noqa: S608
            f" CROSS JOIN search_text t ON t.session_no = e.rowid WHERE {_and(self._holds)}",
            *others.parameters,
            *_parameters(self._holds),
        )
        return _union([texts, checked]), left

    def _scanned(self) -> tuple[Condition, list[Condition]]:
        """The rows that hold the longest word, by looking at each, and what is still to be checked of them."""
        word = max(self._words, key=len)
        return _union(query.anywhere(word)), [h for w, h in zip(self._words, self._holds, strict=True) if w != word]

    def _among(self, candidates: tuple[Condition, list[Condition]], columns: str) -> list[Row]:
        source, left = candidates
        return self._select(columns, _joined(source, texts=bool(left)), [*self._conditions, *left])

    def _count_among(self, candidates: tuple[Condition, list[Condition]], outside: list[Condition]) -> int:
        source, left = candidates
        return self._count_where(_joined(source, texts=bool(left)), [*outside, *left])

    # -- walking an index ----------------------------------------------------------------------------------------------

    def _newest(self, columns: str, limit: int) -> list[Row] | None:
        """The first `limit` answers when the newest sessions hold so many, or there are no others; else None."""
        index, bounds = self._index()
        boundary = self._reader.rows(
            f"SELECT s.updated_ms FROM sessions s INDEXED BY {index} WHERE {_and(bounds)}"  # noqa: S608
            f" ORDER BY s.updated_ms DESC LIMIT 1 OFFSET {NEWEST}",
            _parameters(bounds),
        )
        since = [Condition("s.updated_ms >= ?", *boundary[0])] if boundary and boundary[0][0] is not None else []
        where = [*bounds, *self._conditions, *since, *self._holds]
        table = Condition(f"sessions s INDEXED BY {index}" + self._join())
        found = self._select(columns, table, where)
        return found if len(found) == limit or not boundary else None

    def _index(self) -> tuple[str, list[Condition]]:
        """The index by last change that holds the fewest rows beside the answers, and what it can bound."""
        filters = self._filters
        bounds = [c for c in self._conditions if c.sql.startswith("s.updated_ms ")]
        if filters.app is not None:
            return "sessions_by_app", [Condition("s.app = ?", filters.app), *bounds]
        if filters.is_default_list:
            return "sessions_listed", [Condition(query.LISTED), *bounds]
        if filters.archived or filters.gone:
            return "sessions_hidden", [Condition(HIDDEN), *bounds]
        return "sessions_by_update", bounds

    def _walk(self, columns: str) -> list[Row]:
        index, bounds = self._index()
        table = Condition(f"sessions s INDEXED BY {index}" + self._join())
        return self._select(columns, table, [*bounds, *self._conditions, *self._holds])

    def _join(self) -> str:
        return " CROSS JOIN search_text t ON t.session_no = s.session_no" if self._words else ""

    def _is_short(self, scope: str) -> bool:
        return self._count(Condition(f"SELECT 1 FROM sessions s WHERE {scope}"), SHORT_WALK) <= SHORT_WALK  # noqa: S608

    # -- asking --------------------------------------------------------------------------------------------------------

    def _select(self, columns: str, source: Condition, where: list[Condition]) -> list[Row]:
        return self._reader.rows(
            f"SELECT {columns} FROM {source.sql} WHERE {_and(where)}"  # noqa: S608
            f" ORDER BY {query.ORDERS[self._order]} LIMIT ?",
            (*source.parameters, *_parameters(where), -1 if self._limit is None else self._limit),
        )

    def _count_joined(self, source: Condition, outside: list[Condition]) -> int:
        return self._count_where(source, [*outside, *self._holds])

    def _count_where(self, source: Condition, where: list[Condition]) -> int:
        select = f"SELECT 1 FROM {source.sql} WHERE {_and(where)}"  # noqa: S608
        return self._count(Condition(select, *source.parameters, *_parameters(where)), COUNT_LIMIT)

    def _count(self, select: Condition, limit: int) -> int:
        """The number of rows, counted up to `limit` + 1."""
        rows = self._reader.rows(
            f"SELECT count(*) FROM (SELECT 1 FROM ({select.sql}) LIMIT {limit + 1})",  # noqa: S608
            select.parameters,
        )
        return rows[0][0] if rows and isinstance(rows[0][0], int) else 0


def _joined(candidates: Condition, *, texts: bool) -> Condition:
    """Candidates with their rows, and their folded texts where these are looked at."""
    sql = f"({candidates.sql}) c CROSS JOIN sessions s ON s.session_no = c.rowid"
    if texts:
        sql += " CROSS JOIN search_text t ON t.session_no = c.rowid"
    return Condition(sql, *candidates.parameters)


def _union(selects: list[Condition]) -> Condition:
    """Each row once; the column is named `rowid` whatever the selects call it."""
    parts = " UNION ".join([select.sql for select in selects])
    return Condition(
        f"SELECT column1 AS rowid FROM (SELECT NULL AS column1 WHERE 0 UNION {parts})",  # noqa: S608
        *[p for select in selects for p in select.parameters],
    )


def _and(where: list[Condition]) -> str:
    return " AND ".join([c.sql for c in where]) or "1"


def _parameters(where: list[Condition]) -> tuple[object, ...]:
    return tuple([p for c in where for p in c.parameters])
