"""Numbers of the file system that SQLite's signed 64 bits do not hold as they are."""

from __future__ import annotations

import contextlib

import pytest

from sessiond.model import Fingerprint, Reading, Source
from sessiond.store.writer import Writer

FAR = 32_503_680_000 * 10**9
"""The year 3000 in nanoseconds; 2^63 of them end in 2262."""


def kept(folder, fingerprint):
    """What is known of a source after it was stored and the index opened anew."""
    source = Source("codex", "/h", "/h/rollout.jsonl", "rollout")
    with contextlib.closing(Writer(folder)) as writer, writer.transaction():
        known, _ = writer.replace_source(
            source, fingerprint, Reading(facts={}, state=b""), 1, again=False, known=None
        )  # fmt: skip
        writer.replace_source(source, fingerprint, Reading(facts={}, state=b""), 1, again=False, known=known)
        writer.note_source(known, fingerprint, "denied")
    with contextlib.closing(Writer(folder)) as writer:
        return writer.known({"codex": 1})[source.path]


@pytest.mark.parametrize("ino", [1, 2**63 - 1, 2**63, 2**64 - 1])
def test_an_inode_of_64_bits_is_recognised(tmp_path, ino):
    fingerprint = Fingerprint(2**64 - 1, ino, 10, 20, 30)
    assert kept(str(tmp_path / "state"), fingerprint).is_at(fingerprint)


@pytest.mark.parametrize("time_ns", [FAR, -FAR])
def test_a_time_beyond_what_can_be_stored_means_reading_again(tmp_path, time_ns):
    fingerprint = Fingerprint(1, 2, 10, time_ns, 30)
    assert not kept(str(tmp_path / "state"), fingerprint).is_at(fingerprint)
