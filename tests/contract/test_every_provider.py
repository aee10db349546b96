"""What every provider owes, over every fixture.

A case is a folder `fixtures/<app>/<case>/`: `home/` is a vendor's home, `expected.json` the rows that it must yield
and the ids it must not, with the reason. A column that a row leaves out has its default; `home`, the absolute `path`
and `bytes` are filled in here. `needs` names a decoder without which the case is passed over.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from sessiond.apps import NAMES
from sessiond.config import Homes
from sessiond.model import DATABASE, Excluded, Fingerprint, Observation, Previous, Reason, Session, Walk
from sessiond.provider import load

FIXTURES = Path(__file__).parents[2] / "fixtures"
CASES = sorted((app, case.parent.name) for app in NAMES for case in FIXTURES.glob(f"{app}/*/expected.json"))
READ_BUDGET_BYTES = 64 << 20
"""More than this no provider reads of one file at once, however large it is: head, followed line and tail together."""

every_case = pytest.mark.parametrize(("app", "case"), CASES, ids=[f"{app}-{case}" for app, case in CASES])
every_app = pytest.mark.parametrize("app", NAMES)


def provider_over(app, home):
    return load(Homes({app: (str(home),)}), app)


def case_of(app, case):
    folder = FIXTURES / app / case
    return folder / "home", json.loads((folder / "expected.json").read_text())


def can_unpack():
    return any(map(importlib.util.find_spec, ("compression", "backports")))


def sources_of(provider):
    return [(provider.claim(path), fingerprint) for path, fingerprint in provider.discover(Walk())]


def observe_file(provider, source, fingerprint):
    with open(source.path, "rb", buffering=0) as file:
        return provider.observe(source, file, fingerprint.size, None)


def observations_of(provider):
    """Every observation by session id, made the way a scan makes them."""
    found = {}
    for source, fingerprint in sources_of(provider):
        for session_id, facts in observe_file(provider, source, fingerprint).facts.items():
            stored = json.loads(json.dumps(facts))
            found.setdefault(session_id, []).append(Observation(source, fingerprint, session_id, stored))
    return found


def merged(provider):
    return {i: provider.merge(observations) for i, observations in observations_of(provider).items()}


def expected_row(app, home, row):
    path = row.get("path")
    row = {"app": app, "home": str(home), **row}
    if path is not None:
        row["path"] = str(home / path)
        row.setdefault("bytes", (home / path).stat().st_size)
    return Session(**row)._asdict()


@every_case
def test_a_home_yields_exactly_the_expected_sessions(app, case):
    home, expected = case_of(app, case)
    if expected.get("needs") == "zstd" and not can_unpack():
        pytest.skip("no decoder for zstd is installed")
    results = merged(provider_over(app, home))
    rows = {i: session._asdict() for i, session in results.items() if isinstance(session, Session)}
    assert rows == {row["id"]: expected_row(app, home, row) for row in expected["sessions"]}


@every_case
def test_what_is_no_session_is_left_out_for_the_stated_reason(app, case):
    home, expected = case_of(app, case)
    results = merged(provider_over(app, home))
    reasons = {i: result.reason.name for i, result in results.items() if isinstance(result, Excluded)}
    assert reasons == expected.get("excluded", {})


@every_case
def test_every_discovered_path_is_claimed_by_itself(app, case):
    home, _ = case_of(app, case)
    provider = provider_over(app, home)
    for path, _ in provider.discover(Walk()):
        source = provider.claim(path)
        assert source is not None
        assert source.path == path
        assert (source.app, source.home) == (app, str(home))


@every_case
def test_discovery_and_a_single_look_agree_on_the_state_of_a_file(app, case):
    home, _ = case_of(app, case)
    provider = provider_over(app, home)
    for source, fingerprint in sources_of(provider):
        assert provider.fingerprint(source) == fingerprint


@every_case
def test_discovery_below_a_folder_finds_what_the_whole_discovery_finds_there(app, case):
    home, _ = case_of(app, case)
    provider = provider_over(app, home)
    everything = dict(provider.discover(Walk()))
    for folder in {os.path.dirname(path) for path in everything}:
        below = dict(provider.discover(Walk(), below=folder))
        assert {p: f for p, f in everything.items() if os.path.dirname(p) == folder}.items() <= below.items()
        assert below.items() <= everything.items()


@every_case
def test_reading_on_after_any_cut_equals_reading_the_whole(app, case):
    home, _ = case_of(app, case)
    provider = provider_over(app, home)
    for source, _ in sources_of(provider):
        data = Path(source.path).read_bytes()
        if source.kind == DATABASE:
            continue
        whole = provider.observe(source, io.BytesIO(data), len(data), None)
        for cut in cuts(data):
            first = provider.observe(source, io.BytesIO(data[:cut]), cut, None)
            previous = Previous(first.state, json.loads(json.dumps({} if first.partial else first.facts)))
            second = provider.observe(source, io.BytesIO(data), len(data), previous)
            assert (second.facts, second.partial) == (whole.facts, whole.partial), f"cut at byte {cut} of {source.path}"


def cuts(data):
    """Where lines end, one byte before and after, and some places inside lines."""
    ends = [i for i, byte in enumerate(data) if byte == 0x0A]
    if len(data) > 20_000:
        ends = ends[:40]
    near = {place + step for place in ends for step in (-1, 0, 1, 2)}
    step = max(1, len(data) // 40)
    return sorted(cut for cut in near | set(range(0, len(data), step)) if 0 <= cut < len(data))


OPENED: list[tuple[str, int]] | None = None


def _note_open(event, args):
    if OPENED is not None and event == "open" and isinstance(args[0], str | bytes):
        OPENED.append((os.fsdecode(args[0]), args[2]))


sys.addaudithook(_note_open)


@contextlib.contextmanager
def opened_files():
    """(path, flags) of every file that is opened meanwhile."""
    global OPENED  # noqa: PLW0603 - an audit hook stays for the life of the process
    OPENED = found = []
    try:
        yield found
    finally:
        OPENED = None


@every_case
def test_nothing_below_a_home_is_opened_but_the_claimed_sources_and_those_for_reading_only(app, case):
    home, _ = case_of(app, case)
    provider = provider_over(app, home)
    with opened_files() as found:
        merged(provider)
    inside = [(path, flags) for path, flags in found if path.startswith(str(home) + "/")]
    assert inside
    allowed = {source.path for source, _ in sources_of(provider)}
    allowed |= {path + suffix for path in allowed for suffix in ("-wal", "-journal")}
    for path, flags in inside:
        assert path in allowed
        assert flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND) == 0, path


@every_case
def test_reading_leaves_every_file_and_time_as_it_was(app, case, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / app / case / "home", home, symlinks=True)
    before = state_of(home)
    merged(provider_over(app, home))
    assert state_of(home) == before


def state_of(home):
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns, path.is_file() and path.read_bytes())
        for path in sorted(home.rglob("*"))
    }


class Endless:
    """A file of any size that repeats one pattern; counts what is read of it."""

    def __init__(self, pattern, size):
        self.pattern, self.size, self.at, self.read_bytes = pattern * (1 + (1 << 20) // len(pattern)), size, 0, 0

    def seek(self, offset, whence=0):
        self.at = offset
        return offset

    def read(self, size=-1):
        size = min(1 << 20, self.size - self.at if size < 0 else size, max(0, self.size - self.at))
        self.at += size
        self.read_bytes += size
        return self.pattern[:size]


NOISE = bytes(range(256)) * 64
HOSTILE = {
    "empty": b"",
    "newlines": b"\n" * 5000,
    "NULs": bytes(5000),
    "noise": NOISE,
    "no object": b'[1,2]\n"x"\n3\nnull\n',
    "deep": b'{"type":' + b"[" * 100_000 + b"\n",
    "giant number": b'{"type":"user","timestamp":' + b"9" * 10_000 + b"}\n",
    "wrong types": b'{"type":[],"timestamp":{},"cwd":1,"payload":"x","message":[],"gitBranch":{}}\n',
    "half surrogates": b'{"type":"user","cwd":"\\ud800","message":{"content":"\\udfff"},"payload":{"cwd":"\\ud800"}}\n',
    "byte order mark": b'\xef\xbb\xbf{"type":"user"}\r\n',
}


def one_source_per_kind(app):
    found = {}
    for provider_app, case in CASES:
        if provider_app == app:
            provider = provider_over(app, case_of(app, case)[0])
            for source, _ in sources_of(provider):
                if source.kind != DATABASE:
                    found.setdefault((source.kind, os.path.splitext(source.path)[1]), (provider, source))
    return list(found.values())


@every_app
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_no_content_makes_reading_or_merging_fail(app, content):
    for provider, source in one_source_per_kind(app):
        reading = provider.observe(source, io.BytesIO(content), len(content), None)
        again = provider.observe(
            source, io.BytesIO(content + content), 2 * len(content), Previous(reading.state, dict(reading.facts))
        )
        for session_id, facts in again.facts.items():
            observation = Observation(source, Fingerprint(1, 1, 2 * len(content), 1, 1), session_id, facts)
            assert provider.merge([observation]) is not None


@every_app
@pytest.mark.parametrize("pattern", [b"x", b"\0", b'{"type":"user","cwd":"/a"}\n', b"\n"], ids=repr)
def test_an_enormous_file_is_read_within_the_budget(app, pattern):
    for provider, source in one_source_per_kind(app):
        file = Endless(pattern, 3 << 30)
        provider.observe(source, file, file.size, None)
        assert file.read_bytes <= READ_BUDGET_BYTES


@every_app
def test_a_missing_home_is_told_apart_from_an_empty_one(app, tmp_path):
    provider = provider_over(app, tmp_path / "nowhere")
    walk = Walk()
    assert list(provider.discover(walk)) == []
    assert walk.unreadable


@every_app
def test_nothing_outside_the_homes_is_claimed(app, tmp_path):
    provider = provider_over(app, tmp_path / "home")
    assert provider.claim(str(tmp_path / "elsewhere" / "projects" / "-a" / "x.jsonl")) is None
    assert provider.claim(str(tmp_path / "home")) is None


@every_app
def test_a_session_without_any_file_is_missing(app):
    provider = provider_over(app, "/nowhere")
    assert provider.merge([]) == Excluded(Reason.MISSING)
