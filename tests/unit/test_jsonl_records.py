"""Records out of whole, damaged and over-long lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiond.jsonl import CUT, KEEP_FIRST_BYTES, KEEP_LAST_BYTES, blocks_at_end, parse, records

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=8), values, min_size=1, max_size=4)


def line(value):
    return json.dumps(value, separators=(",", ":")).encode()


@given(objects)
def test_a_whole_line_is_its_object(value):
    assert records(line(value)) == [value]


@given(st.binary(max_size=200))
def test_no_bytes_raise(data):
    records(data)
    records(CUT + data)
    records(data + CUT + data)
    blocks_at_end(data + CUT + data)


@given(objects, objects)
def test_two_whole_objects_on_one_line_both_count(one, two):
    assert records(line(one) + line(two)) == [one, two]


@given(objects, st.integers(1, 20))
def test_a_record_cut_short_costs_only_itself(torn, length):
    whole = {"type": "user", "message": {"content": [{"type": "text", "text": "x"}]}}
    cut = line({"type": "assistant", "x": torn})[:-1][: 5 + length]
    assert records(cut + line(whole))[-1] == whole


def test_a_torn_line_alone_is_no_record():
    assert records(b'{"type":"user","message":{"role":"us') == []


def test_an_object_inside_a_torn_line_is_no_record():
    assert records(b'{"type":"assistant","usage":{"input":3}') == []


@pytest.mark.parametrize("noise", [b"\0\0\0", b"\r", b" ", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_nuls_and_white_space_around_a_record_are_passed_over(noise):
    assert records(noise + b'{"a":1}') == [{"a": 1}]


def test_bytes_that_are_no_utf8_are_replaced():
    assert records(b'{"a":"caf\xe9"}') == [{"a": "caf\ufffd"}]


@pytest.mark.parametrize(
    "damaged", [b"[" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000, b'{"a":' + b"9" * 5000 + b"}"]
)
def test_depth_and_digits_without_end_cost_only_the_line(damaged):
    assert records(damaged) == []


def test_the_record_of_a_line_is_the_last_on_it():
    assert parse(b'{"a":1}{"b":2}') == {"b": 2}
    assert parse(b"nonsense") is None


# -- over-long lines: only the two ends are there ----------------------------------------------------------------------


def shortened(data):
    assert len(data) > KEEP_FIRST_BYTES + KEEP_LAST_BYTES
    return data[:KEEP_FIRST_BYTES] + CUT + data[-KEEP_LAST_BYTES:]


ENVELOPE = {"type": "user", "cwd": "/home/sam", "gitBranch": "main", "timestamp": "2026-10-01T09:00:00.000Z"}
PAYLOAD = {"message": {"role": "user", "content": "see " + "x" * 400_000}}


def test_pairs_before_the_payload_are_known():
    (record,) = records(shortened(line(ENVELOPE | PAYLOAD)))
    assert ENVELOPE.items() <= record.items()


def test_pairs_behind_the_payload_are_known():
    (record,) = records(shortened(line(PAYLOAD | ENVELOPE)))
    assert ENVELOPE.items() <= record.items()


def test_the_beginning_of_a_text_that_is_cut_is_known():
    (record,) = records(shortened(line(PAYLOAD | ENVELOPE)))
    assert record["message"]["role"] == "user"
    assert record["message"]["content"].startswith("see xxx")


def test_text_blocks_before_the_cut_are_known():
    content = [{"type": "text", "text": "look at this"}, {"type": "image", "source": {"data": "A" * 400_000}}]
    (record,) = records(shortened(line({"message": {"content": content}} | ENVELOPE)))
    assert record["message"]["content"][0] == {"type": "text", "text": "look at this"}


def test_text_blocks_behind_the_cut_are_found():
    content = [{"type": "image", "source": {"data": "A" * 400_000}}, {"type": "text", "text": "look at this"}]
    data = shortened(line({"message": {"content": content}} | ENVELOPE))
    assert blocks_at_end(data) == [{"type": "text", "text": "look at this"}]


def test_a_whole_record_glued_to_an_over_long_one_counts_for_itself():
    note = {"type": "custom-title", "customTitle": "Name", "sessionId": "s"}
    one, two = records(shortened(line(PAYLOAD | ENVELOPE) + line(note)))
    assert ENVELOPE.items() <= one.items()
    assert "customTitle" not in one
    assert two == note


def test_an_over_long_record_cut_short_costs_only_itself():
    note = {"type": "custom-title", "customTitle": "Name", "sessionId": "s"}
    assert records(shortened(line(ENVELOPE | PAYLOAD)[:300_000] + line(note))) == [note]


@pytest.mark.parametrize("order", ["before", "behind"])
def test_keys_inside_message_text_are_never_taken_for_facts(order):
    deceit = ',"cwd":"/evil","gitBranch":"evil","type":"evil","timestamp":"2030-01-01T00:00:00.000Z"}'
    text = deceit * 3 + "x" * 400_000 + deceit * 60
    payload = {"message": {"content": text, "nested": {"cwd": "/evil", "gitBranch": "evil"}}}
    (record,) = records(shortened(line(ENVELOPE | payload if order == "before" else payload | ENVELOPE)))
    for key, value in record.items():
        assert key == "message" or value == ENVELOPE[key]


def test_keys_of_a_nested_object_at_the_end_are_never_taken_for_facts():
    data = {"toolUseResult": {"stdout": "x" * 400_000, "cwd": "/evil", "gitBranch": "evil"}}
    (record,) = records(shortened(line({"type": "user"} | data)))
    assert "cwd" not in record
    assert "gitBranch" not in record


def test_a_path_that_is_cut_is_not_known():
    (record,) = records(shortened(line({"type": "user", "cwd": "/" + "x" * 400_000})))
    assert record == {"type": "user"}


@given(st.integers(0, 9000), st.sampled_from(["/evil", '","cwd":"/evil"}', "\\", '"', "é", "😀", "\n"]))
def test_wherever_the_cuts_fall_only_true_facts_come_out(shift, filler):
    text = "x" * shift + filler * 90_000
    truth = {"message": {"content": text}} | ENVELOPE
    data = json.dumps(truth, separators=(",", ":"), ensure_ascii=False).encode()
    for record in records(shortened(data)):
        for key, value in record.items():
            if key != "message":
                assert value == ENVELOPE[key]
            elif isinstance(value.get("content"), str):
                assert text.startswith(value["content"].rstrip("\ufffd"))
