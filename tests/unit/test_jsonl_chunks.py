"""Bounded reading of JSON-lines files."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiond import jsonl
from sessiond.jsonl import CUT, KEEP_FIRST_BYTES, KEEP_LAST_BYTES, LINE_BYTES, chunks

lines = st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=40)


def file_of(*parts):
    return io.BytesIO(b"".join(parts))


def never(_data):
    return False


def always(_data):
    return True


@pytest.fixture
def small(monkeypatch):
    """Budgets of a few dozen bytes."""
    monkeypatch.setattr(chunks, "HEAD_BYTES", 64)
    monkeypatch.setattr(chunks, "TAIL_BYTES", 32)
    monkeypatch.setattr(chunks, "TAIL_MAX_BYTES", 256)
    monkeypatch.setattr(chunks, "FOLLOW_BYTES", 512)


def test_a_small_file_is_all_head():
    data = b'{"a":1}\n{"b":2}\n'
    assert jsonl.read_head(io.BytesIO(data), len(data)) == (0, len(data), data, True, ())


def test_a_last_line_without_newline_is_read_but_not_consumed():
    data = b'{"a":1}\n{"b":2}'
    head = jsonl.read_head(io.BytesIO(data), len(data))
    assert (head.end, head.data, head.complete) == (8, data, False)


def test_nothing_beyond_the_given_size_is_read():
    assert jsonl.read_head(io.BytesIO(b"a\nb\nc\n"), 4).data == b"a\nb\n"


def test_a_line_that_begins_inside_the_head_is_followed_to_its_end(small):
    line = b"x" * 100
    data = b"a\n" + line + b"\nrest\n"
    head = jsonl.read_head(io.BytesIO(data), len(data))
    assert (head.end, head.data) == (103, b"a\n" + line + b"\n")


def test_a_head_that_ends_with_a_line_stops_there(small):
    data = b"y" * 63 + b"\n" + b"z" * 500 + b"\n"
    head = jsonl.read_head(io.BytesIO(data), len(data))
    assert (head.end, head.data) == (64, b"y" * 63 + b"\n")


def test_a_line_that_ends_too_far_away_is_known_by_its_first_part_and_not_consumed(small):
    data = b"a\n" + b"x" * 2000 + b"\n"
    head = jsonl.read_head(io.BytesIO(data), len(data))
    assert head.end == 2
    assert head.data == b"a\n" + b"x" * 62 + CUT


def test_an_over_long_line_keeps_both_ends():
    line = b"f" * KEEP_FIRST_BYTES + b"m" * LINE_BYTES + b"l" * KEEP_LAST_BYTES
    data = b"a\n" + line + b"\nb\n"
    chunk = jsonl.read_appended(io.BytesIO(data), 0, len(data))
    assert chunk.data == b"a\n" + b"f" * KEEP_FIRST_BYTES + CUT + b"l" * KEEP_LAST_BYTES + b"\nb\n"
    assert chunk.end == len(data)


def test_a_line_of_just_the_allowed_length_is_kept_whole():
    data = b"x" * LINE_BYTES + b"\n"
    assert jsonl.read_appended(io.BytesIO(data), 0, len(data)).data == data


def test_positions_behind_cuts_lead_back_to_offsets_in_the_file():
    long = b"x" * (LINE_BYTES + 1)
    data = b"a\n" + long + b"\nb\n" + long + b"\nc\n"
    chunk = jsonl.read_appended(io.BytesIO(b"123" + data), 3, 3 + len(data))
    for line in (b"a\n", b"b\n", b"c\n"):
        place = chunk.data.rfind(b"\n" + line) + 1
        assert chunk.offset(place) == 3 + (data.rfind(b"\n" + line) + 1)


def test_a_followed_line_in_the_head_keeps_the_end_of_the_line_not_of_what_was_read():
    data = b"f" * chunks.HEAD_BYTES + b"m" * (1 << 20) + b"END\nnext\n"
    head = jsonl.read_head(io.BytesIO(data), len(data))
    assert head.data.startswith(b"f" * KEEP_FIRST_BYTES + CUT)
    assert head.data.endswith(b"mEND\n")
    assert head.end == len(data) - len(b"next\n")


def test_the_tail_grows_until_it_is_enough(small):
    data = b"".join(b"line %03d\n" % i for i in range(100))
    tail = jsonl.read_tail(io.BytesIO(data), 0, len(data), lambda chunk: b"line 080" in chunk)
    assert b"line 080\n" in tail.data
    assert tail.data == data[tail.start :]
    assert tail.start >= len(data) - 256


def test_the_tail_stops_at_its_limit(small):
    data = b"".join(b"line %03d\n" % i for i in range(1000))
    tail = jsonl.read_tail(io.BytesIO(data), 0, len(data), never)
    assert len(data) - 256 <= tail.start < len(data) - 200


def test_the_tail_begins_exactly_where_the_head_ended_when_it_gets_there(small):
    data = b"".join(b"line %03d\n" % i for i in range(20))
    tail = jsonl.read_tail(io.BytesIO(data), 90, len(data), never)
    assert (tail.start, tail.data) == (90, data[90:])


def test_the_tail_begins_with_a_whole_line(small):
    data = b"".join(b"line %03d\n" % i for i in range(100))
    tail = jsonl.read_tail(io.BytesIO(data), 0, len(data), always)
    assert data[tail.start - 1 : tail.start] == b"\n"


def test_inside_one_enormous_line_the_tail_is_its_last_part(small):
    data = b"a\n" + b"x" * 5000 + b"END"
    tail = jsonl.read_tail(io.BytesIO(data), 2, len(data), never)
    assert tail.data.startswith(CUT)
    assert tail.data.endswith(b"xEND")
    assert not tail.complete


def test_more_than_the_budget_is_not_read_as_appended(monkeypatch):
    monkeypatch.setattr(chunks, "APPEND_MAX_BYTES", 4)
    assert jsonl.read_appended(io.BytesIO(b"a\nb\nc\n"), 0, 6) is None
    assert jsonl.read_appended(io.BytesIO(b"a\nb\nc\n"), 2, 6).data == b"b\nc\n"


@given(lines, st.integers(1, 60))
def test_blocks_hold_every_line_once_and_in_order(some_lines, block_bytes):
    data = b"".join(line + b"\n" for line in some_lines)
    got = b"".join(chunk.data for chunk in jsonl.read_blocks(io.BytesIO(data), 0, len(data), block_bytes))
    assert got == data


@given(lines, st.integers(42, 90))
def test_blocks_backwards_hold_every_line_once(some_lines, block_bytes):
    data = b"".join(line + b"\n" for line in some_lines)
    found = list(jsonl.read_back(io.BytesIO(data), 0, len(data), block_bytes))
    assert b"".join(chunk.data for chunk in reversed(found)) == data


@given(lines, st.integers(1, 30))
def test_blocks_backwards_hold_only_whole_lines_and_pass_over_those_longer_than_a_block(some_lines, block_bytes):
    data = b"".join(line + b"\n" for line in some_lines)
    whole = {(m, line) for m, line in _with_offsets(data)}
    seen = set()
    for chunk in jsonl.read_back(io.BytesIO(data), 0, len(data), block_bytes):
        assert data[chunk.start : chunk.end] == chunk.data
        seen |= {(chunk.start + m, line) for m, line in _with_offsets(chunk.data)}
    assert seen <= whole
    assert {(m, line) for m, line in whole if len(line) + 1 < block_bytes // 2} <= seen


def _with_offsets(data):
    at = 0
    for line in data.split(b"\n")[:-1]:
        yield at, line
        at += len(line) + 1


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=20), st.booleans())
def test_reading_lines_gives_every_line(some_lines, ends_with_newline):
    data = b"\n".join(some_lines) + (b"\n" if ends_with_newline else b"")
    expected = data.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert list(jsonl.read_lines(io.BytesIO(data))) == expected


def test_reading_lines_keeps_only_the_ends_of_an_enormous_one(monkeypatch):
    monkeypatch.setattr(chunks, "READ_LINE_BYTES", 1 << 20)
    data = b"a\n" + b"f" * KEEP_FIRST_BYTES + b"m" * (5 << 20) + b"END\nb\nc"
    first, long, *rest = jsonl.read_lines(io.BytesIO(data))
    assert first == b"a"
    assert long.startswith(b"f" * KEEP_FIRST_BYTES + CUT)
    assert long.endswith(b"mEND")
    assert rest == [b"b", b"c"]


def test_a_seal_holds_while_a_file_is_only_appended_to():
    data = bytes(range(256)) * 20
    assert jsonl.seal(io.BytesIO(data), 4000) == jsonl.seal(io.BytesIO(data + b"more"), 4000)


@pytest.mark.parametrize("place", [0, 511, 3000, 3999])
def test_a_seal_breaks_when_the_first_or_the_last_bytes_differ(place):
    data = bytearray(bytes(range(256)) * 20)
    before = jsonl.seal(io.BytesIO(bytes(data)), 4000)
    data[place] ^= 1
    assert jsonl.seal(io.BytesIO(bytes(data)), 4000) != before


def test_a_read_that_returns_less_is_continued():
    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 3))

    assert jsonl.read_at(Slow(b"abcdefghij"), 2, 7) == b"cdefghi"


def test_a_line_that_begins_before_the_start_is_not_in_the_blocks_backwards():
    data = b"aaa\nbbb\nccc\n"
    assert [chunk.data for chunk in jsonl.read_back(io.BytesIO(data), 5, 12, 99)] == [b"ccc\n"]
    assert [chunk.data for chunk in jsonl.read_back(io.BytesIO(data), 4, 12, 99)] == [b"bbb\nccc\n"]
