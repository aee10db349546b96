"""What a scan reads and forgets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiond.model import Fingerprint
from sessiond.scan.decide import decide, is_racy
from sessiond.store.writer import ANEW, Known

OLD = Fingerprint(1, 10, 100, 1_000, 1_000)


def known(fingerprint=OLD, *, again=0):
    return Known(1, *fingerprint[1:], again, "")


def everything(_path):
    return True


def test_an_unchanged_file_is_not_read():
    assert decide({"/r/a": OLD}, {"/r/a": known()}, (), everything) == ([], [])


def test_a_new_file_is_read():
    assert decide({"/r/a": OLD}, {}, (), everything).read == [("/r/a", OLD)]


@pytest.mark.parametrize("field", ["ino", "size", "mtime_ns", "ctime_ns"])
def test_a_file_is_read_when_one_part_of_its_fingerprint_differs(field):
    now = OLD._replace(**{field: 5})
    assert decide({"/r/a": now}, {"/r/a": known()}, (), everything).read == [("/r/a", now)]


def test_another_device_number_alone_is_no_change():
    assert decide({"/r/a": OLD._replace(dev=9)}, {"/r/a": known()}, (), everything).read == []


def test_a_file_that_has_to_be_read_again_is_read():
    assert decide({"/r/a": OLD}, {"/r/a": known(again=ANEW)}, (), everything).read == [("/r/a", OLD)]


def test_the_newest_file_is_read_first():
    files = {f"/r/{n}": OLD._replace(mtime_ns=n) for n in (2, 9, 5)}
    assert [path for path, _ in decide(files, {}, (), everything).read] == ["/r/9", "/r/5", "/r/2"]


def test_a_known_file_that_is_not_found_is_absent():
    assert decide({}, {"/r/a": known()}, (), everything).absent == ["/r/a"]


@pytest.mark.parametrize("hidden", ["/r", "/r/", "/r/p", "/r/p/a"])
def test_a_file_below_what_cannot_be_read_is_not_absent(hidden):
    assert decide({}, {"/r/p/a": known()}, (hidden,), everything).absent == []


def test_a_folder_hides_only_what_is_below_it():
    assert decide({}, {"/r/project/a": known()}, ("/r/p",), everything).absent == ["/r/project/a"]


def test_a_file_of_a_home_that_is_not_indexed_now_is_not_absent():
    assert decide({}, {"/r/a": known()}, (), lambda _path: False).absent == []


NAMES = st.sampled_from([f"/r/{folder}/{name}" for folder in "pq" for name in "abc"])


@given(st.sets(NAMES), st.sets(NAMES), st.booleans())
def test_every_path_is_read_kept_or_forgotten(on_disk, remembered, hide_p):
    found = dict.fromkeys(on_disk, OLD)
    decision = decide(found, dict.fromkeys(remembered, known()), ("/r/p",) if hide_p else (), everything)
    lost = {path for path in remembered - on_disk if not (hide_p and path.startswith("/r/p/"))}
    assert ({path for path, _ in decision.read}, set(decision.absent)) == (on_disk - remembered, lost)


NOW_MS = 1_000_000_000


@pytest.mark.parametrize(("age_ms", "racy"), [(0, True), (2_900, True), (3_100, False), (-60_000, False)])
def test_a_file_is_racy_while_a_second_change_could_hide(age_ms, racy):
    stamp_ns = (NOW_MS - age_ms) * 1_000_000
    assert is_racy(OLD._replace(ctime_ns=stamp_ns), NOW_MS) is racy


def test_a_modification_time_that_somebody_set_does_not_make_a_file_racy_for_ever():
    assert not is_racy(Fingerprint(1, 1, 1, (NOW_MS + 10**9) * 10**6, (NOW_MS - 10_000) * 10**6), NOW_MS)
