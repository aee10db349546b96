"""Rows as text: a table for a terminal, tab-separated lines for a pipe, JSON. Pure; imported by the fast path.

Nothing unprintable is let through: control and format characters, bidi marks, lone surrogates, unassigned code points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sessions_cli import when

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Printable by category, but drawn as nothing."""
_BOLD, _DIM, _MARK, _OFF = "\x1b[1m", "\x1b[2m", "\x1b[1;33m", "\x1b[0m"


def printable(text: str) -> str:
    r"""Text that is safe on a terminal and in a pipe: `^[` for control characters, `\u{200b}` for the rest."""
    if text.isprintable() and (text.isascii() or _INVISIBLE.isdisjoint(text)):
        return text
    return "".join([c if c.isprintable() and c not in _INVISIBLE else _caret(c) for c in text])


def _caret(c: str) -> str:
    code = ord(c)
    if code < 0x20:
        return "^" + chr(code + 0x40)
    return "^?" if code == 0x7F else f"\\u{{{code:x}}}"


def json_safe(text: str) -> str:
    r"""JSON text with everything unprintable written as `\uXXXX`."""
    if text.isprintable() and (text.isascii() or _INVISIBLE.isdisjoint(text)):
        return text
    return "".join([c if c.isprintable() and c not in _INVISIBLE else _json_escape(c) for c in text])


def _json_escape(c: str) -> str:
    code = ord(c)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def json_array(objects: Iterable[str]) -> str:
    """An array with one object a line; `[]` when there is none."""
    lines = ",\n".join([json_safe(o) for o in objects])
    return f"[\n{lines}\n]\n" if lines else "[]\n"


def tab_separated(rows: Sequence[Sequence[str]]) -> str:
    """One line a row; a tab or newline inside a value is escaped as everything unprintable is."""
    every = "".join(map("".join, rows))
    if not (every.isprintable() and (every.isascii() or _INVISIBLE.isdisjoint(every))):
        rows = [list(map(printable, row)) for row in rows]
    return "".join(["\t".join(row) + "\n" for row in rows])


# -- display width -----------------------------------------------------------------------------------------------------


def width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def _char_width(c: str) -> int:
    if c < "\u0300":
        return 1
    from unicodedata import category, east_asian_width  # noqa: PLC0415 - most text is ASCII

    if category(c) in ("Mn", "Me", "Cf") or "\u1160" <= c <= "\u11ff":
        return 0
    return 2 if east_asian_width(c) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """The text, shortened to so many columns with an ellipsis at its end; marks stay with what they belong to."""
    if width(text) <= columns:
        return text
    if columns < 1:
        return ""
    kept, used = [], 0
    for c in text:
        used += _char_width(c)
        if used > columns - 1:
            break
        kept.append(c)
    return "".join(kept).rstrip() + "…"


def cut_path(path: str, columns: int) -> str:
    """The path, shortened at its beginning: its end tells folders apart."""
    if width(path) <= columns:
        return path
    parts = path.split("/")
    for first in range(1, len(parts)):
        shorter = "…/" + "/".join(parts[first:])
        if width(shorter) <= columns:
            return shorter
    return cut(parts[-1], columns)


def pad(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


# -- table -------------------------------------------------------------------------------------------------------------


SOME_ROOM = 72
"""A terminal with fewer columns shows ids and titles only."""
MUCH_ROOM = 100
"""A terminal with fewer columns shows the app's name up to its first dash."""
LEAST = 5
"""What is left of a column that can be cut when there is hardly any room."""


class Column:
    """One column of a table: what its cells say, how narrow it may get, and how it is cut."""

    __slots__ = ("cells", "cut", "least", "mark", "title")

    def __init__(
        self,
        title: str,
        cells: list[str],
        *,
        least: int = 0,
        cut: Callable[[str, int], str] = cut,
        mark: bool = False,
    ) -> None:
        self.title = title
        self.cells = cells
        self.least = least
        """Columns of the terminal that it keeps when room is short; 0: it is never cut."""
        self.cut = cut
        self.mark = mark
        """Whether found words are marked in it."""


def table(columns: Sequence[Column], terminal_columns: int, *, color: bool, words: Sequence[str] = ()) -> str:
    """An aligned table that fits the terminal."""
    widths = _fit(columns, terminal_columns)
    lines = []
    heading = "  ".join([pad(cut(c.title, w), w) for c, w in zip(columns, widths, strict=True)]).rstrip()
    lines.append(f"{_DIM}{heading}{_OFF}" if color else heading)
    for row in range(len(columns[0].cells)):
        cells = []
        for column, columns_wide in zip(columns, widths, strict=True):
            text = column.cut(column.cells[row], columns_wide)
            padding = " " * (columns_wide - width(text))
            if color and column.mark and words:
                text = marked(text, words)
            cells.append(text + padding)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _fit(columns: Sequence[Column], terminal_columns: int) -> list[int]:
    """The width of each column: what its cells want, or less, taken from those that can spare most."""
    wide = [max([width(c.title), *map(width, c.cells)]) for c in columns]
    excess = sum(wide) + 2 * (len(columns) - 1) - terminal_columns
    for least in ([c.least for c in columns], [min(c.least, LEAST) for c in columns]):
        spare = [max(0, w - at_least) if at_least else 0 for at_least, w in zip(least, wide, strict=True)]
        while excess > 0 and any(spare):
            at = spare.index(max(spare))
            step = min(excess, spare[at] - max([0, *[s for s in spare if s < spare[at]]]))
            wide[at] -= step
            spare[at] -= step
            excess -= step
    return wide


def marked(text: str, words: Sequence[str]) -> str:
    """The text with every found word in colour; `words` are folded."""
    from sessiond.store.fold import fold  # noqa: PLC0415 - only in colour

    folded, origin = [], []
    for at, c in enumerate(text):
        for part in fold(c):
            folded.append(part)
            origin.append(at)
    hay = "".join(folded)
    hit = [False] * len(text)
    for word in words:
        start = hay.find(word)
        while start >= 0:
            for i in range(start, start + len(word)):
                hit[origin[i]] = True
            start = hay.find(word, start + 1)
    marked, on = [], False
    for c, is_hit in zip(text, hit, strict=True):
        if is_hit != on:
            marked.append(_MARK if is_hit else _OFF)
            on = is_hit
        marked.append(c)
    return "".join(marked) + (_OFF if on else "")


def sessions_table(
    rows: Sequence[Sequence[object]],
    ids: Sequence[str],
    *,
    terminal_columns: int,
    color: bool,
    words: Sequence[str],
    user_home: str,
    now: int,
    order: str = "updated",
    numbers: Sequence[str] = (),
) -> str:
    """The list of sessions, numbered if numbers are given.

    Rows are (app, id, updated_ms, branch, cwd, title, created_ms, bytes, archived, gone_ms, interactive, resumable).
    """
    columns = [Column("#", list(numbers))] if numbers else []
    columns.append(Column("ID", [printable(i) for i in ids], mark=True))
    if terminal_columns >= SOME_ROOM:
        columns += _when(rows, order, now)
        states = [_state(r) for r in rows]
        if any(states):
            columns.append(Column("STATE", states))
        if len({r[0] for r in rows}) > 1:
            apps = [printable(str(r[0])) for r in rows]
            if terminal_columns < MUCH_ROOM:
                apps = [app.partition("-")[0] for app in apps]
            columns.append(Column("APP", apps, mark=True))
        folders = [printable(_tilde(r[4], user_home)) for r in rows]
        columns += [
            Column("FOLDER", folders, least=14, cut=cut_path, mark=True),
            Column("BRANCH", [printable(_text(r[3])) for r in rows], least=10, mark=True),
        ]
    columns.append(Column("TITLE", [printable(_text(r[5])) for r in rows], least=24, mark=True))
    return table(columns, terminal_columns, color=color, words=words)


def _when(rows: Sequence[Sequence[object]], order: str, now: int) -> list[Column]:
    """The columns that say when, and how large where that is the order."""
    name, at = ("CREATED", 6) if order == "created" else ("UPDATED", 2)
    columns = [Column(name, [when.ago(_number(r[at]), now) for r in rows])]
    if order == "size":
        columns.append(Column("SIZE", [size(_number(r[7])) for r in rows]))
    return columns


def _state(row: Sequence[object]) -> str:
    """Why a row is not in the default list, in one word; empty when it is."""
    archived, gone_ms, interactive, resumable = row[8:12]
    if gone_ms is not None:
        return "gone"
    if archived:
        return "archived"
    if not interactive:
        return "script"
    return "" if resumable else "no file"


def size(count: int | None) -> str:
    """Bytes as people read them: `812 B`, `1.4 MB` (powers of 1000)."""
    if count is None:
        return "-"
    if count < 1000:
        return f"{count} B"
    amount, unit = count / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if amount >= 999.5:
            amount, unit = amount / 1000, larger
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _tilde(path: object, user_home: str) -> str:
    text = _text(path)
    if user_home and (text == user_home or text.startswith(user_home + "/")):
        return "~" + text[len(user_home) :]
    return text
