"""The scanner over real files and a real index, with the simplest of vendors."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import time

import pytest

from sessiond import paths
from sessiond.config import Config, Homes
from sessiond.scan import SECOND_LOOK_MS, Scanner, scan_all, scanner
from sessiond.store.facts import unpacked
from sessiond.store.writer import Writer
from tests.kit.fake_provider import FakeProvider

HOMES = Homes()


class Place:
    """A root of the fake vendor, a state folder, and the index between them."""

    def __init__(self, folder):
        self.root = folder / "vendor" / "sessions"
        self.root.mkdir(parents=True)
        self.archive = folder / "vendor" / "archive"
        self.archive.mkdir()
        self.state = str(folder / "state")
        self.provider = FakeProvider(self.root, self.archive)
        self.writer = None
        self.open()

    def open(self):
        if self.writer is not None:
            self.writer.close()
        self.writer = Writer(self.state)
        self.scanner = Scanner([self.provider], self.writer)

    def write(self, name, text="hello\n", root=None, age_s=60):
        path = (root or self.root) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        os.utime(path, (time.time() - age_s,) * 2)
        return path

    def scan(self):
        return scan_all(self.scanner, HOMES, Config())

    def rows(self, columns="id, title", where="1"):
        with contextlib.closing(sqlite3.connect(paths.index_file(self.state))) as connection:
            return connection.execute(f"SELECT {columns} FROM sessions WHERE {where} ORDER BY id").fetchall()

    def settle(self):
        """The second look, when enough time has passed."""
        return self.scanner.second_look(time.time_ns() // 1_000_000 + SECOND_LOOK_MS)


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    yield place
    place.writer.close()


def settled(place):
    """Every file counts as read once and for all, however young it is."""
    with place.writer.transaction():
        place.writer._connection.execute("UPDATE sources SET racy = 0")
    place.open()
    place.provider.opened.clear()


def test_a_first_scan_lists_what_is_on_disk(place):
    place.write("p/aaaaaaaa.jsonl", "one\n")
    place.write("q/bbbbbbbb.jsonl", "two\n")
    place.scan()
    assert place.rows() == [("aaaaaaaa", "one"), ("bbbbbbbb", "two")]


def test_a_second_scan_opens_nothing(place):
    place.write("p/aaaaaaaa.jsonl")
    place.scan()
    settled(place)
    place.scan()
    assert place.provider.opened == []


def test_a_file_read_right_after_its_change_is_read_once_more(place):
    place.write("p/aaaaaaaa.jsonl")
    place.scan()
    place.provider.opened.clear()
    place.scan()
    assert len(place.provider.opened) == 1


def test_a_changed_file_alone_is_read(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.write("p/bbbbbbbb.jsonl")
    place.scan()
    settled(place)
    path.write_text("changed\n")
    place.scan()
    assert (place.provider.opened, place.rows()[0]) == ([str(path)], ("aaaaaaaa", "changed"))


def test_an_append_is_read_from_where_reading_stopped(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    with path.open("a") as file:
        file.write("more\n")
    place.scanner.changed([str(path)])
    assert [f["continued"] for f in facts(place)] == [True]


def facts(place):
    return [unpacked(row[0]) for row in place.writer._connection.execute("SELECT facts FROM observations")]


def test_a_replaced_file_is_read_from_its_start(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    other = place.write("p/other", "other\n")
    other.replace(path)
    place.scanner.changed([str(path)])
    assert [f["continued"] for f in facts(place)] == [False]


def test_another_reader_version_reads_every_file_anew(place):
    place.write("p/aaaaaaaa.jsonl")
    place.scan()
    settled(place)
    place.provider.reader_version = 2
    place.open()
    place.scan()
    assert [f["continued"] for f in facts(place)] == [False]


def test_two_sources_make_one_session(place):
    place.write("p/aaaaaaaa.jsonl", "said\n")
    place.write("p/aaaaaaaa.name", "named\n")
    place.scan()
    assert place.rows() == [("aaaaaaaa", "named")]


def test_a_source_that_goes_takes_only_its_own_facts_along(place):
    place.write("p/aaaaaaaa.jsonl", "said\n")
    name = place.write("p/aaaaaaaa.name", "named\n")
    place.scan()
    name.unlink()
    place.scanner.changed([str(name)])
    assert place.rows() == [("aaaaaaaa", "said")]


def test_a_session_whose_file_turns_out_empty_leaves_the_list(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    path.write_text("")
    place.scanner.changed([str(path)])
    assert place.rows() == []


# -- absence ---------------------------------------------------------------------------------------------------------


def test_a_deleted_session_is_not_resumable_at_once(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    path.unlink()
    place.scanner.changed([str(path)])
    assert place.rows("resumable, gone_ms") == [(0, None)]


def test_a_deleted_session_is_gone_at_the_second_look(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    path.unlink()
    place.scan()
    place.settle()
    assert place.rows("id", "gone_ms IS NOT NULL") == [("aaaaaaaa",)]


def test_a_second_look_right_after_the_first_settles_nothing(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    path.unlink()
    place.scan()
    assert place.scanner.second_look() == 1


def test_a_session_that_is_back_at_the_second_look_is_as_before(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    path.rename(path.with_suffix(".away"))
    place.scanner.changed([str(path)])
    path.with_suffix(".away").rename(path)
    place.settle()
    assert place.rows("resumable, gone_ms") == [(1, None)]


def test_a_gone_session_that_comes_back_is_listed_again(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    path.unlink()
    place.scan()
    place.settle()
    place.write("p/aaaaaaaa.jsonl", "back\n")
    place.scan()
    assert place.rows("title, resumable, gone_ms") == [("back", 1, None)]


def test_a_clock_that_was_set_back_does_not_keep_a_session_from_being_gone(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    path.unlink()
    place.scan()
    assert place.scanner.second_look(time.time_ns() // 1_000_000 - 86_400_000) == 0


def test_a_gone_row_is_dropped_after_its_time(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    path.unlink()
    place.scan()
    place.settle()
    with place.writer.transaction():
        place.writer.drop_gone(time.time_ns() // 1_000_000 + 10_000)
    assert place.rows() == []


@pytest.mark.parametrize("told", [True, False])
def test_a_deleted_project_folder_takes_its_sessions_along(place, told):
    place.write("p/aaaaaaaa.jsonl")
    place.write("q/bbbbbbbb.jsonl")
    place.scan()
    shutil.rmtree(place.root / "p")
    place.scanner.changed([str(place.root / "p")]) if told else place.scan()
    place.settle()
    assert place.rows("id", "gone_ms IS NOT NULL") == [("aaaaaaaa",)]


@pytest.mark.parametrize("told", ["file", "folder", "root", "nothing"])
def test_a_vanished_root_takes_no_session_along(place, told):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    place.root.rename(place.root.with_name("away"))
    if told == "nothing":
        place.scan()
    else:
        place.scanner.changed([str({"file": path, "folder": path.parent, "root": place.root}[told])])
    place.settle()
    assert place.rows("resumable, gone_ms") == [(1, None)]


@pytest.mark.parametrize("told", ["file", "folder", "root", "nothing"])
@pytest.mark.parametrize("restarted", [False, True])
def test_an_empty_folder_in_the_place_of_a_root_takes_no_session_along(place, told, restarted):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    place.root.rename(place.root.with_name("away"))
    place.root.mkdir()
    if restarted:
        place.open()
    if told == "nothing":
        place.scan()
    else:
        place.scanner.changed([str({"file": path, "folder": path.parent, "root": place.root}[told])])
        place.scan()
    place.settle()
    assert place.rows("resumable, gone_ms") == [(1, None)]


def test_a_root_that_comes_back_after_a_swap_is_as_before(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    place.root.rename(place.root.with_name("away"))
    place.root.mkdir()
    place.scan()
    place.root.rmdir()
    place.root.with_name("away").rename(place.root)
    path.write_text("later\n")
    place.scan()
    assert place.rows("title, gone_ms") == [("later", None)]


def test_a_new_root_that_holds_sessions_replaces_the_old_one(place):
    place.write("p/aaaaaaaa.jsonl")
    place.scan()
    place.root.rename(place.root.with_name("away"))
    place.root.mkdir()
    place.write("p/bbbbbbbb.jsonl")
    place.scan()
    place.write("p/aaaaaaaa.name", "of no use alone\n")
    place.scan()
    place.settle()
    assert place.rows("id", "gone_ms IS NULL") == [("bbbbbbbb",)]


def test_a_person_who_deletes_everything_in_a_root_is_believed(place):
    place.write("p/aaaaaaaa.jsonl")
    place.scan()
    shutil.rmtree(place.root / "p")
    place.scan()
    place.settle()
    assert place.rows("id", "gone_ms IS NOT NULL") == [("aaaaaaaa",)]


def test_a_folder_that_cannot_be_listed_takes_no_session_along(place):
    place.write("p/aaaaaaaa.jsonl")
    place.scan()
    listed = place.provider._list

    def denied(folder, walk, *, deep):
        if folder == str(place.root / "p"):
            walk.unreadable[folder] = "Permission denied"
            return iter(())
        return listed(folder, walk, deep=deep)

    place.provider._list = denied
    place.scan()
    place.settle()
    assert place.rows("resumable, gone_ms") == [(1, None)]


def test_rows_of_a_home_that_is_not_indexed_now_stay(place):
    place.write("p/aaaaaaaa.jsonl")
    place.scan()
    place.provider = FakeProvider(place.archive)
    place.open()
    place.scan()
    place.settle()
    assert place.rows("resumable, gone_ms") == [(1, None)]


# -- moves -----------------------------------------------------------------------------------------------------------


def watched_rows(place):
    """Every state of the rows that a reader could have seen."""
    seen = []
    commit = place.writer.transaction

    @contextlib.contextmanager
    def transaction():
        with commit():
            yield
        seen.append(place.rows("resumable, gone_ms, path IS NOT NULL"))

    place.writer.transaction = transaction
    return seen


def test_a_file_moved_to_the_archive_never_flickers(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    (place.archive / "p").mkdir()
    seen = watched_rows(place)
    target = place.archive / "p" / "aaaaaaaa.jsonl"
    path.rename(target)
    place.scanner.changed([str(path), str(target)])
    assert set(map(tuple, seen)) == {((1, None, 1),)}
    assert place.rows("path") == [(str(target),)]


def test_a_renamed_project_folder_with_many_files_never_flickers(place, monkeypatch):
    monkeypatch.setattr(scanner, "BATCH_SOURCES", 40)
    for number in range(90):
        place.write(f"p/{number:08d}.jsonl")
    place.scan()
    seen = watched_rows(place)
    place.root.joinpath("p").rename(place.root / "q")
    place.scanner.changed([str(place.root / "p"), str(place.root / "q")])
    assert all(row == (1, None, 1) for rows in seen for row in rows)
    assert place.rows("count(*)", f"path LIKE '{place.root}/q/%'") == [(90,)]


def test_a_file_that_moves_while_the_folders_are_listed_is_found(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    (place.archive / "p").mkdir()
    listed = place.provider._list
    moved = []

    def late(folder, walk, *, deep):
        if folder == str(place.root) and not moved:
            moved.append(True)
            list(listed(str(place.archive), walk, deep=True))
            return away(folder, walk, deep)
        return listed(folder, walk, deep=deep)

    def away(folder, walk, deep):
        path.rename(place.archive / "p" / path.name)
        yield from ()
        result = list(listed(folder, walk, deep=deep))
        yield from result

    place.provider.folders.reverse()  # the archive is listed first, the file moves there afterwards
    place.provider._list = late
    seen = watched_rows(place)
    place.scan()
    assert set(map(tuple, seen)) == {((1, None, 1),)}


def test_a_copy_keeps_the_session_when_the_other_file_goes(place):
    path = place.write("p/aaaaaaaa.jsonl")
    copy = place.write("q/aaaaaaaa.jsonl", "copy\n")
    place.scan()
    path.unlink()
    place.scanner.changed([str(path)])
    assert place.rows("path, gone_ms") == [(str(copy), None)]


# -- what goes wrong with one file -----------------------------------------------------------------------------------


def test_a_file_that_makes_the_provider_fail_costs_only_itself(place):
    bad = place.write("p/aaaaaaaa.jsonl")
    place.write("p/bbbbbbbb.jsonl")
    place.provider.fail_with[str(bad)] = RuntimeError("bug")
    place.scan()
    assert place.rows("id") == [("bbbbbbbb",)]


def test_a_read_error_keeps_the_row_and_notes_the_problem(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    place.provider.fail_with[str(path)] = OSError(5, "Input/output error")
    path.write_text("unreadable\n")
    place.scan()
    problems = place.writer._connection.execute("SELECT problem FROM scan_problems").fetchall()
    assert (place.rows("title, gone_ms"), problems) == ([("hello", None)], [("Input/output error",)])


def test_a_file_that_could_not_be_read_is_tried_again(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.provider.fail_with[str(path)] = OSError(5, "Input/output error")
    place.scan()
    place.provider.fail_with.clear()
    place.scan()
    assert place.rows() == [("aaaaaaaa", "hello")]


def test_a_file_deleted_between_look_and_reading_is_forgotten(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    path.write_text("again\n")
    fingerprint = place.provider.fingerprint

    def then_gone(source):
        found = fingerprint(source)
        path.unlink()
        return found

    place.provider.fingerprint = then_gone
    place.scanner.changed([str(path)])
    assert place.rows("resumable") == [(0,)]


@pytest.mark.parametrize("name", [b"\xff\xfeaaaa.jsonl", "ünïcödé.jsonl".encode(), b"new\nline.jsonl"])
def test_a_name_of_any_bytes_is_indexed_and_found_again(place, name):
    folder = os.fsencode(place.root / "p")
    os.makedirs(folder)
    with open(os.path.join(folder, name), "w") as file:
        file.write("hello\n")
    place.scan()
    settled(place)
    place.scan()
    (stored,) = place.rows("path")[0]
    assert (os.fsencode(stored), place.provider.opened) == (os.path.join(folder, name), [])


def test_a_name_of_any_bytes_goes_when_its_file_goes(place):
    path = os.path.join(os.fsencode(place.root / "p"), b"\xff\xfe.jsonl")
    os.makedirs(os.path.dirname(path))
    with open(path, "w") as file:
        file.write("hello\n")
    place.scan()
    os.unlink(path)
    place.scanner.changed([os.fsdecode(path)])
    assert place.rows("resumable") == [(0,)]


def test_a_foreign_name_that_comes_and_goes_costs_no_walk(place):
    place.write("p/aaaaaaaa.jsonl")
    place.scan()
    listed = []
    place.provider.discover = lambda walk, below=None: listed.append(below) or iter(())
    place.scanner.changed([str(place.root / "p" / "gone.tmp")])
    assert listed == []


# -- gaps ------------------------------------------------------------------------------------------------------------


def test_each_gap_is_looked_at_once_newest_first(place):
    for name, age_s in (("aaaaaaaa", 100), ("bbbbbbbb", 50)):
        place.write(f"p/{name}.jsonl", age_s=age_s)
    place.scan()
    with place.writer.transaction():
        place.writer._connection.execute("UPDATE sources SET gap_bytes = 1000")
    filled = []
    fill = place.provider.fill
    place.provider.fill = lambda source, *rest: filled.append(os.path.basename(source.path)) or fill(source, *rest)
    counts = [place.scanner.fill_next_gap() for _ in range(3)]
    assert (filled, counts) == (["bbbbbbbb.jsonl", "aaaaaaaa.jsonl"], [1000, 1000, None])


def test_a_gap_that_cannot_be_read_is_not_tried_for_ever(place):
    path = place.write("p/aaaaaaaa.jsonl")
    place.scan()
    with place.writer.transaction():
        place.writer._connection.execute("UPDATE sources SET gap_bytes = 1000")
    path.chmod(0)
    place.provider.fill = None
    place.scanner.fill_next_gap()
    assert place.scanner.files_with_gaps() == 0


# -- the frame -------------------------------------------------------------------------------------------------------


def test_a_finished_scan_says_so(place):
    place.scan()
    assert (place.writer.meta("state"), type(place.writer.meta("last_full_scan_ms"))) == ("complete", int)


def test_a_first_scan_tells_how_far_it_is(place, monkeypatch):
    monkeypatch.setattr(scanner, "BATCH_SOURCES", 40)
    for number in range(90):
        place.write(f"p/{number:08d}.jsonl")
    states = []
    scan_all(place.scanner, HOMES, Config(), lambda done, total: states.append((done, total)))
    assert states == [(40, 90), (80, 90), (90, 90)]


def test_a_scan_that_is_broken_off_keeps_what_it_has_and_says_building(place, monkeypatch):
    monkeypatch.setattr(scanner, "BATCH_SOURCES", 40)
    for number in range(90):
        place.write(f"p/{number:08d}.jsonl")

    def stop(_done, _total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan_all(place.scanner, HOMES, Config(), stop)
    assert (place.writer.meta("state"), place.rows("count(*)")) == ("building 40/90", [(40,)])
