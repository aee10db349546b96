"""Times as people write and read them, against `datetime`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_cli import when

MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001 - zones are added below


def ms(moment):
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@given(MOMENTS)
def test_a_time_is_written_as_datetime_writes_it(naive):
    moment = naive.replace(tzinfo=UTC)
    expected = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert when.rfc3339(ms(moment)) == expected


@given(MOMENTS, st.integers(-23 * 60 - 59, 23 * 60 + 59), st.sampled_from("Tt "))
def test_a_time_with_an_offset_is_read_as_datetime_reads_it(naive, offset_minutes, separator):
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))
    assert when.moment_ms(moment.isoformat(separator, timespec="milliseconds")) == ms(moment)


@given(st.text(max_size=30))
def test_any_other_text_is_a_value_error(text):
    try:
        assert isinstance(when.moment_ms(text), int)
    except ValueError:
        return


@pytest.mark.parametrize(
    ("text", "expected"), [("90m", 90 * 60), ("12h", 12 * 3600), ("3d", 3 * 86_400), ("2w", 14 * 86_400), ("5s", 5)]
)
def test_a_duration(text, expected):
    assert when.duration_ms(text) == expected * 1000


@pytest.mark.parametrize("text", ["", "3", "d", "-3d", "3 d", "1.5h", "٣d", "3D", "9999999d"])
def test_no_duration(text):
    with pytest.raises(ValueError):
        when.duration_ms(text)


@pytest.mark.parametrize(
    ("passed_ms", "text"),
    [
        (0, "now"), (59_999, "now"), (60_000, "1m ago"), (3_599_999, "59m ago"), (3_600_000, "1h ago"),
        (86_399_999, "23h ago"), (86_400_000, "1d ago"), (364 * 86_400_000, "364d ago"),
        (365 * 86_400_000, "2025-11-30"), (-3_600_000, "2026-11-30"),
    ],
)  # fmt: skip
def test_how_long_ago(passed_ms, text):
    now = 1_796_000_000_000
    assert when.ago(now - passed_ms, now) == text


def test_no_time_is_a_dash():
    assert when.ago(None, 0) == "-"


def test_a_year_of_five_digits_is_left_empty():
    assert when.rfc3339(253_402_300_800_000) == ""
