"""Times as people write and read them. Pure but for the local time zone; imported by the fast path.

Written by hand: `datetime` and `calendar` cost more to import than the whole query takes.
"""

from __future__ import annotations

import time

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
_UNITS = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_LAST_MS = 253_402_300_800_000
"""The end of the year 9999."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def duration_ms(text: str) -> int:
    """`90m`, `12h`, `3d`, `2w` in milliseconds; raises ValueError for anything else."""
    amount, unit = text[:-1], text[-1:]
    if unit in _UNITS and amount.isascii() and amount.isdecimal() and len(amount) <= 6:
        return int(amount) * _UNITS[unit]
    raise ValueError(f"{text!r} is not a duration such as 90m, 12h, 3d or 2w")


def moment_ms(text: str) -> int:
    """A duration back from now, a local date, or an RFC 3339 time; raises ValueError for anything else."""
    try:
        return now_ms() - duration_ms(text)
    except ValueError:
        pass
    try:
        return _local_date(text) if len(text) == 10 else _rfc3339(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no duration (3d), no date (2026-03-01) and no RFC 3339 time (2026-03-01T12:00:00Z)"
        ) from None


def _digits(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return int(text)


def _date(text: str) -> tuple[int, int, int]:
    if len(text) != 10 or text[4] != "-" or text[7] != "-":
        raise ValueError(text)
    year, month, day = _digits(text[:4]), _digits(text[5:7]), _digits(text[8:])
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= _days_in(year, month):
        raise ValueError(text)
    return year, month, day


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _local_date(text: str) -> int:
    year, month, day = _date(text)
    try:
        return int(time.mktime((year, month, day, 0, 0, 0, 0, 0, -1))) * SECOND_MS
    except OverflowError:
        raise ValueError(text) from None


def _rfc3339(text: str) -> int:
    if len(text) < 20 or text[10] not in "Tt " or text[13] != ":" or text[16] != ":":
        raise ValueError(text)
    year, month, day = _date(text[:10])
    hour, minute, second = _digits(text[11:13]), _digits(text[14:16]), _digits(text[17:19])
    if hour > 23 or minute > 59 or second > 60:
        raise ValueError(text)
    rest = text[19:]
    milliseconds = 0
    if rest[0] == ".":
        end = 1
        while end < len(rest) and rest[end].isdecimal():
            end += 1
        _digits(rest[1:end])
        milliseconds = int((rest[1:end] + "00")[:3])
        rest = rest[end:]
    return (
        (_days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * SECOND_MS
        + milliseconds
        - _offset_ms(rest)
    )


def _offset_ms(text: str) -> int:
    if text in ("Z", "z"):
        return 0
    if len(text) != 6 or text[0] not in "+-" or text[3] != ":":
        raise ValueError(text)
    hours, minutes = _digits(text[1:3]), _digits(text[4:])
    if hours > 23 or minutes > 59:
        raise ValueError(text)
    return (hours * HOUR_MS + minutes * MINUTE_MS) * (-1 if text[0] == "-" else 1)


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date in the proleptic Gregorian calendar."""
    year -= month <= 2
    shifted = (month + 9) % 12
    return year * 365 + year // 4 - year // 100 + year // 400 + (153 * shifted + 2) // 5 + day - 1 - 719_468


def rfc3339(moment: int | None) -> str:
    """`2026-03-01T12:00:00.000Z`; empty for None and for what no four-digit year can say."""
    if moment is None or not -62_135_596_800_000 <= moment < _LAST_MS:
        return ""
    seconds, milliseconds = divmod(moment, SECOND_MS)
    t = time.gmtime(seconds)
    return f"{t[0]:04}-{t[1]:02}-{t[2]:02}T{t[3]:02}:{t[4]:02}:{t[5]:02}.{milliseconds:03}Z"


def ago(moment: int | None, now: int) -> str:
    """How long ago, in one unit: `now`, `5m ago`, `3d ago`; a date when it is more than a year, or to come."""
    if moment is None:
        return "-"
    passed = now - moment
    if passed < -MINUTE_MS or passed >= 365 * DAY_MS:
        return rfc3339(moment)[:10] or "-"
    for unit_ms, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "m")):
        if passed >= unit_ms:
            return f"{passed // unit_ms}{unit} ago"
    return "now"
