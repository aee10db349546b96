"""Sandbox settings are kept as they were recorded, without what says nothing of the folder as a whole."""

from __future__ import annotations

import json

import pytest

from sessiond.providers.codex.rights import denies_paths, sandbox_word
from sessiond.providers.codex.settings import recorded_sandbox, sandbox_of_row

FOLDER = "/Users/alex/code/shop-api"


def special(kind, access, **value):
    return {"path": {"type": "special", "value": {"kind": kind, **value}}, "access": access}


def path(name, access):
    return {"path": {"type": "path", "path": name}, "access": access, "missing_path_behavior": "skip"}


def managed(*entries):
    return {"type": "managed", "file_system": {"type": "restricted", "entries": list(entries)}, "network": "restricted"}


ROOT, ROOTS, TMP = special("root", "read"), special("project_roots", "write"), special("slash_tmp", "write")
PROTECTED = [special("project_roots", "read", subpath=".git"), path(f"{FOLDER}/.codex", "read")]
PROFILES = {
    "workspace": (managed(ROOT, ROOTS, TMP, special("tmpdir", "write"), *PROTECTED), managed(ROOTS)),
    "read only": (managed(ROOT), managed()),
    "minimal": (managed(special("minimal", "read")), managed()),
    "denied": (managed(ROOT, ROOTS, path("/etc", "deny"), path(f"{FOLDER}/.env", "none")),
               managed(ROOTS, path("/etc", "deny"), path(f"{FOLDER}/.env", "none"))),
    "read above": (managed(ROOTS, path("/Users/alex/code", "read")), managed(ROOTS, path("/Users/alex/code", "read"))),
    "folder read": (managed(ROOTS, path(FOLDER, "read")), managed(ROOTS, path(FOLDER, "read"))),
    "roots read": (managed(special("project_roots", "read")), managed(special("project_roots", "read"))),
    "path written": (managed(ROOT, path("/Users/alex", "write")), managed(path("/Users/alex", "write"))),
    "unknown": (managed(ROOT, {"path": {"type": "glob_pattern", "pattern": "*"}, "access": "read"}, "odd"),
                managed({"path": {"type": "glob_pattern", "pattern": "*"}, "access": "read"}, "odd")),
}  # fmt: skip


@pytest.mark.parametrize(("profile", "kept"), PROFILES.values(), ids=PROFILES)
def test_of_a_managed_profile_what_may_be_written_and_what_is_denied_is_kept(profile, kept):
    assert json.loads(recorded_sandbox(profile, FOLDER)) == kept


@pytest.mark.parametrize(("profile", "kept"), PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("folder", [FOLDER, "/tmp/x", "/", "/Users/alex"])
def test_what_is_left_out_changes_nothing_for_resuming(profile, kept, folder):
    whole, left = json.dumps(profile), recorded_sandbox(profile, folder)
    assert sandbox_word(left, folder) == sandbox_word(whole, folder)
    assert denies_paths(left) == denies_paths(whole)


def test_a_row_and_a_record_of_the_same_setting_are_the_same_text():
    profile = managed(ROOT, ROOTS, *PROTECTED)
    assert sandbox_of_row(json.dumps(profile, separators=(",", ":")), FOLDER) == recorded_sandbox(profile, FOLDER)


@pytest.mark.parametrize(
    "text",
    ["read-only", '{"type":"read-only"}', '{"type":"disabled"}', '{"type":"external","network":"restricted"}', "{odd"],
)
def test_every_other_setting_is_kept_letter_for_letter(text):
    assert sandbox_of_row(text, FOLDER) == text


def test_a_setting_that_is_too_large_keeps_its_type_alone():
    profile = managed(*[path(f"/denied/{number}", "deny") for number in range(500)])
    assert recorded_sandbox(profile, FOLDER) == '{"type":"managed"}'
    assert sandbox_word('{"type":"managed"}', FOLDER) is None
