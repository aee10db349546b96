"""Where Claude Code's sessions are looked for, and where nothing is ever opened."""

import json
import os
import threading

import pytest

from sessiond.config import Config, Homes
from sessiond.model import Walk
from sessiond.providers.claude_code import ClaudeCode
from sessiond.scan import refresh
from sessiond.store.reader import Reader

ID = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
OTHER = "0b7d5f3c-61e8-4a02-9c77-e4d1b2a90f16"


@pytest.fixture
def claude(tmp_path):
    """A home with one session."""
    folder = tmp_path / ".claude"
    write(folder / "projects" / "-home-sam-app" / f"{ID}.jsonl", transcript())
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def transcript(cwd="/home/sam/app", text="Start", time="2026-10-01T09:00:00.000Z"):
    record = {"type": "user", "message": {"role": "user", "content": text}, "uuid": "u", "timestamp": time, "cwd": cwd}
    return json.dumps(record) + "\n"


def discovered(home, walk=None, below=None):
    return sorted(path for path, _ in ClaudeCode([str(home)]).discover(walk or Walk(), below))


def index(tmp_path, *homes):
    """Scan the homes into an index of the test's own; its rows."""
    state = str(tmp_path / "state")
    assert refresh(state, Homes({"claude-code": tuple(map(str, homes))}), Config(), wait_s=5)
    columns = "id, home, path, cwd, title, gone_ms, resumable"
    with Reader(state) as reader:
        return [
            dict(zip(columns.split(", "), row, strict=True)) for row in reader.rows(f"SELECT {columns} FROM sessions")
        ]


# -- what is looked at -------------------------------------------------------------------------------------------------


def test_transcripts_and_name_files_are_found(claude):
    folder = claude / "projects" / "-home-sam-app"
    name = write(folder / ID / "custom-title.json", "{}")
    assert discovered(claude) == sorted([str(folder / f"{ID}.jsonl"), str(name)])


@pytest.mark.parametrize(
    "name",
    [
        f"-home-sam-app/{ID}/subagents/{OTHER}.jsonl",
        f"-home-sam-app/{ID}/subagents/agent-1.jsonl",
        f"-home-sam-app/memory/{OTHER}.jsonl",
        f"-home-sam-app/-nested/{OTHER}.jsonl",
        f"-home-sam-app/{OTHER}.jsonl.orphaned-1",
        "-home-sam-app/agent-0123456789abcdef0123456789abcde.jsonl",
        "-home-sam-app/sessions-index.json",
        f"-home-sam-app/{OTHER}/other.json",
        "-home-sam-app/notes/custom-title.json",
        f"{OTHER}.jsonl",
        f"../{OTHER}.jsonl",
    ],
)
def test_nothing_else_is_found_or_claimed(claude, name):
    path = write(claude / "projects" / name, transcript())
    assert str(path) not in discovered(claude)
    assert ClaudeCode([str(claude)]).claim(os.path.normpath(path)) is None


def test_every_home_claims_its_own_and_the_row_remembers_it(tmp_path, claude):
    work = tmp_path / ".claude-work"
    write(work / "projects" / "-home-sam-app" / f"{OTHER}.jsonl", transcript())
    rows = {row["id"]: row["home"] for row in index(tmp_path, claude, work)}
    assert rows == {ID: str(claude), OTHER: str(work)}


def test_the_same_id_in_two_folders_is_one_row_with_the_newer_copy(tmp_path, claude):
    newer = write(
        claude / "projects" / "-home-sam-new" / f"{ID}.jsonl",
        transcript("/home/sam/new", time="2026-10-02T09:00:00.000Z"),
    )
    (row,) = index(tmp_path, claude)
    assert (row["path"], row["cwd"]) == (str(newer), "/home/sam/new")


def test_a_session_that_moves_to_another_folder_keeps_its_row(tmp_path, claude):
    index(tmp_path, claude)
    old = claude / "projects" / "-home-sam-app" / f"{ID}.jsonl"
    new = claude / "projects" / "-home-sam-new" / f"{ID}.jsonl"
    new.parent.mkdir()
    old.rename(new)
    with open(new, "a") as file:
        file.write(transcript("/home/sam/new", "More", "2026-10-01T10:00:00.000Z"))
    (row,) = index(tmp_path, claude)
    assert (row["path"], row["cwd"], row["gone_ms"], row["resumable"]) == (str(new), "/home/sam/new", None, 1)


def test_a_change_of_the_name_file_alone_renames_the_session(tmp_path, claude):
    name = write(claude / "projects" / "-home-sam-app" / ID / "custom-title.json", '{"customTitle": "Before"}')
    assert index(tmp_path, claude)[0]["title"] == "Before"
    name.write_text('{"customTitle": "After"}')
    assert index(tmp_path, claude)[0]["title"] == "After"


def test_a_name_file_that_is_being_rewritten_does_not_take_the_name_away(tmp_path, claude):
    name = write(claude / "projects" / "-home-sam-app" / ID / "custom-title.json", '{"customTitle": "Name"}')
    index(tmp_path, claude)
    name.write_text("")
    assert index(tmp_path, claude)[0]["title"] == "Name"


# -- links -------------------------------------------------------------------------------------------------------------


def test_a_linked_project_folder_is_followed(tmp_path, claude):
    elsewhere = tmp_path / "shared"
    write(elsewhere / f"{OTHER}.jsonl", transcript())
    (claude / "projects" / "-home-sam-shared").symlink_to(elsewhere)
    assert str(claude / "projects" / "-home-sam-shared" / f"{OTHER}.jsonl") in discovered(claude)


def test_a_folder_reached_by_two_links_counts_once(tmp_path, claude):
    elsewhere = tmp_path / "shared"
    write(elsewhere / f"{OTHER}.jsonl", transcript())
    for name in ("-home-sam-one", "-home-sam-two"):
        (claude / "projects" / name).symlink_to(elsewhere)
    assert len([path for path in discovered(claude) if OTHER in path]) == 1


def test_a_link_to_a_project_folder_beside_it_counts_once(claude):
    (claude / "projects" / "-home-sam-alias").symlink_to(claude / "projects" / "-home-sam-app")
    assert discovered(claude) == [str(claude / "projects" / "-home-sam-app" / f"{ID}.jsonl")]


def test_a_link_that_leads_nowhere_hides_what_is_behind_it(claude):
    """Its target may be on a volume that is not mounted just now."""
    link = claude / "projects" / "-dead"
    link.symlink_to("nowhere")
    walk = Walk()
    assert len(discovered(claude, walk)) == 1
    assert list(walk.unreadable) == [str(link)]


def test_links_that_lead_in_circles_are_passed_over(claude):
    (claude / "projects" / "-loop").symlink_to(claude / "projects")
    (claude / "projects" / "-self").symlink_to("-self")
    (claude / "projects" / "-home-sam-app" / OTHER).symlink_to(claude / "projects" / "-home-sam-app")
    assert len(discovered(claude)) == 1


def test_a_link_named_like_a_session_is_not_followed(tmp_path, claude):
    secret = write(tmp_path / "secret", transcript())
    link = claude / "projects" / "-home-sam-app" / f"{OTHER}.jsonl"
    link.symlink_to(secret)
    assert str(link) not in discovered(claude)


# -- folders that cannot be listed -------------------------------------------------------------------------------------


def test_a_missing_home_is_unreadable_not_empty(tmp_path):
    walk = Walk()
    assert discovered(tmp_path / "none", walk) == []
    assert list(walk.unreadable) == [str(tmp_path / "none" / "projects")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_that_may_not_be_listed_is_unreadable(claude):
    folder = claude / "projects" / "-home-sam-app"
    folder.chmod(0)
    try:
        walk = Walk()
        assert discovered(claude, walk) == []
        assert list(walk.unreadable) == [str(folder)]
    finally:
        folder.chmod(0o700)


def test_listed_folders_are_reported_for_watching(claude):
    walk = Walk()
    discovered(claude, walk)
    assert sorted(walk.directories) == [str(claude / "projects"), str(claude / "projects" / "-home-sam-app")]


def test_a_file_where_a_project_folder_would_be_is_passed_over(claude):
    write(claude / "projects" / "notes.txt", "x")
    walk = Walk()
    assert len(discovered(claude, walk)) == 1
    assert walk.unreadable == {}


# -- secrets -----------------------------------------------------------------------------------------------------------

SECRETS = [
    ".credentials.json", ".claude.json", "backups/.claude.json.backup.1", "settings.json", "settings.local.json",
    "cowork_settings.json", "remote-settings.json", "policy-limits.json", "ide/1234.lock", "daemon/socket",
    "jobs/1.json", "teams/crew.json", "sessions/4242.json", "session-env/x", "shell-snapshots/snapshot.sh",
    "file-history/x", "paste-cache/x", "image-cache/x", "uploads/x", "debug/x.txt", "feedback-bundles/x",
    "plugins/config.json", "history.jsonl", "projects/history.jsonl", "projects/-home-sam-app/memory/MEMORY.md",
    "projects/-home-sam-app/sessions-index.json", "projects/-home-sam-app/agent-1234abcd.jsonl",
    f"projects/-home-sam-app/{OTHER}.jsonl", f"projects/-home-sam-app/{ID}/custom-title.json",
    f"projects/-home-sam-app/{ID}/subagents/agent-1.jsonl", f"projects/-home-sam-app/{ID}/tool-results/1.txt",
]  # fmt: skip


def test_a_scan_finishes_although_every_secret_would_block_whoever_opens_it(tmp_path, claude):
    for name in SECRETS:
        (claude / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(claude / name)
    rows = []
    scan = threading.Thread(target=lambda: rows.extend(index(tmp_path, claude)), daemon=True)
    scan.start()
    scan.join(20)
    assert not scan.is_alive(), "the scan opened a FIFO and waits for a writer"
    assert [row["id"] for row in rows] == [ID]
