"""When a session was last used: the latest moment among its conversation's times, however they are written."""

import json
import tracemalloc

import pytest

from sessiond.jsonl import Chunk
from sessiond.providers.claude_code.activity import last_activity
from sessiond.providers.claude_code.records import Lines

NINE_MS = 1_790_845_200_000
"""2026-10-01T09:00:00Z."""
SECOND_MS = 1000
HOUR_MS = 3600 * SECOND_MS


def line(stamp, kind="user", separators=(",", ":")):
    return json.dumps({"type": kind, "timestamp": stamp}, separators=separators).encode() + b"\n"


def updated_ms(*lines):
    data = b"".join(lines)
    known = {}
    last_activity(Lines(Chunk(0, len(data), data)), known)
    return known["updated_ms"][1] if known else None


@pytest.mark.parametrize(
    ("earlier", "later", "later_ms"),
    [
        ("2026-10-01T10:30:00.000+02:00", "2026-10-01T09:00:00.000Z", NINE_MS),
        ("2026-10-01T09:00:00.000Z", "2026-10-01T05:00:00.000-05:00", NINE_MS + HOUR_MS),
        ("2026-10-01T09:00:00Z", "2026-10-01T09:00:00.500Z", NINE_MS + 500),
        ("2026-10-01T08:59:59.999Z", "2026-10-01T09:00:00Z", NINE_MS),
    ],
)
def test_the_latest_moment_counts_not_the_largest_text(earlier, later, later_ms):
    assert updated_ms(line(earlier), line(later)) == later_ms
    assert updated_ms(line(later), line(earlier)) == later_ms


def test_a_time_without_milliseconds_at_the_end_of_a_line_is_a_time():
    assert updated_ms(line("2026-10-01T09:00:00Z"), line("2026-10-01T08:00:00Z", "system")) == NINE_MS


def test_white_space_around_the_colon_is_no_matter():
    assert updated_ms(line("2026-10-01T09:00:00.000Z", separators=(" , ", " : "))) == NINE_MS


@pytest.mark.parametrize("value", ["yesterday", "", None, 7, {"timestamp": "2026-10-01T11:00:00.000Z"}, "2" * 100])
def test_what_is_no_time_is_passed_over(value):
    assert updated_ms(line("2026-10-01T09:00:00.000Z"), line(value)) == NINE_MS


def test_many_long_texts_in_place_of_times_take_no_memory():
    lines = [line("2026-10-01T09:00:00.000Z"), *[line("x" * 300, "system")] * 1000]
    tracemalloc.start()
    try:
        assert updated_ms(*lines) == NINE_MS
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
