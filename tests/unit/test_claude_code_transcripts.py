"""Reading a Claude Code transcript: its ends, what is appended, the gap, rewriting, and what no file may do."""

import contextlib
import io
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sessiond.jsonl import chunks
from sessiond.model import Fingerprint, Observation, Previous, Session
from sessiond.providers.claude_code import ClaudeCode, transcript
from sessiond.providers.claude_code import facts as last_tables
from sessiond.providers.claude_code.known import LAST

FIXTURES = Path(__file__).parents[2] / "fixtures" / "claude-code"
FILES = sorted(path.read_bytes() for path in FIXTURES.glob("*/home/projects/*/*.jsonl") if path.stat().st_size < 12_000)
ID = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
PROVIDER = ClaudeCode(["/home/sam/.claude"])
SOURCE = PROVIDER.claim(f"/home/sam/.claude/projects/-home-sam-app/{ID}.jsonl")
START = datetime(2026, 10, 1, 9, tzinfo=UTC)
NAMES = {"custom_title", "ai_title", "agent_name"}


def line(**record):
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def stamp(second):
    return (START + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def user(text, second=0, **more):
    return line(
        parentUuid=None, isSidechain=False, message={"role": "user", "content": text}, type="user", uuid=f"u{second}",
        timestamp=stamp(second), **{"cwd": "/home/sam/app", "version": "2.1.240", "gitBranch": "main"} | more,
    )  # fmt: skip


def assistant(second=0, text="Done.", **more):
    message = {"role": "assistant", "model": "claude-opus-4-5", "content": [{"type": "text", "text": text}]}
    return line(
        parentUuid="p", isSidechain=False, type="assistant", uuid=f"a{second}", timestamp=stamp(second),
        **{"message": message, "cwd": "/home/sam/app", "version": "2.1.240", "gitBranch": "main"} | more,
    )  # fmt: skip


def title(text, kind="custom-title", key="customTitle"):
    return line(type=kind, **{key: text}, sessionId=ID)


def filler(size, second=1):
    """Records of a tool's work, about 1 KiB each."""
    record = user([{"type": "tool_result", "tool_use_id": "t", "content": "x" * 700}], second)
    return record * (size // len(record) + 1)


def observe(data, previous=None):
    return PROVIDER.observe(SOURCE, io.BytesIO(data), len(data), previous)


def stored(reading):
    """What the index gives back of a reading."""
    return Previous(reading.state, json.loads(json.dumps(reading.facts)))


def facts(reading):
    return reading.facts[ID]


def session(data, reading=None):
    reading = reading or observe(data)
    return PROVIDER.merge([Observation(SOURCE, Fingerprint(1, 1, len(data), 1, 1), ID, facts(reading))])


def fill(data, reading, budget_bytes=64 << 20):
    return PROVIDER.fill(SOURCE, io.BytesIO(data), stored(reading), budget_bytes)


class Counting(io.BytesIO):
    read_bytes = 0

    def read(self, size=-1):
        part = super().read(size)
        self.read_bytes += len(part)
        return part


# -- reading on --------------------------------------------------------------------------------------------------------


@given(st.sampled_from(FILES), st.lists(st.floats(0, 1), max_size=4))
def test_reading_in_any_pieces_is_bit_for_bit_reading_the_whole(data, parts):
    reading = None
    for cut in sorted(int(part * len(data)) for part in parts):
        reading = observe(data[:cut], reading and stored(reading))
    assert observe(data, reading and stored(reading)) == observe(data)


@settings(max_examples=60)
@given(st.sampled_from(FILES), st.data())
def test_no_damage_raises_and_none_makes_continued_reading_differ(data, draw):
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 5))):
        at = draw.draw(st.integers(0, max(0, len(damaged) - 1)))
        damaged[at : at + draw.draw(st.integers(0, 60))] = draw.draw(st.binary(max_size=12))
    damaged = bytes(damaged)
    cut = draw.draw(st.integers(0, len(damaged)))
    assert observe(damaged, stored(observe(damaged[:cut]))) == observe(damaged)


@given(st.binary(max_size=300))
def test_no_bytes_raise(data):
    PROVIDER.merge([Observation(SOURCE, Fingerprint(1, 1, len(data), 1, 1), ID, facts(observe(data)))])


def test_an_append_costs_what_was_appended_and_4_kib():
    data = user("Start") + filler(300_000)
    first = observe(data)
    more = data + assistant(9) + title("Name")
    file = Counting(more)
    PROVIDER.observe(SOURCE, file, len(more), stored(first))
    assert file.read_bytes <= len(more) - len(data) + 4096


def test_state_and_facts_of_a_usual_session_are_small():
    data = (
        user("Fix the double charge on checkout", permissionMode="default") + assistant(5, effort="high") + title("Fix")
    )
    reading = observe(data)
    assert len(reading.state) + len(json.dumps(reading.facts)) < 700


def test_a_name_written_after_a_torn_line_was_completed_is_known():
    data = user("Start") + assistant(3)
    torn = title("Name")[:-20]
    first = observe(data + torn)
    assert "custom_title" not in facts(first)
    assert facts(observe(data + title("Name"), stored(first)))["custom_title"] == "Name"


def test_the_effort_of_a_placeholder_does_not_count():
    placeholder = {"role": "assistant", "model": "<synthetic>", "content": []}
    row = session(user("Start") + assistant(3, effort="high") + assistant(4, effort="low", message=placeholder))
    assert (row.model, row.effort) == ("claude-opus-4-5", "high")


def test_every_fact_that_is_searched_from_the_end_combines_by_the_later_place():
    searched = {fact for fact, _, _ in (*last_tables._LAST, *last_tables._LAST_NOTES)} | {"cwd", "summary"}
    assert searched == LAST


# -- rewriting ---------------------------------------------------------------------------------------------------------


def test_a_file_cut_short_is_read_anew():
    data = user("Start") + assistant(3) + user("More", 9, gitBranch="late")
    cut = user("Start") + assistant(3)
    assert observe(cut, stored(observe(data))) == observe(cut)


def test_a_rewrite_of_the_same_size_is_read_anew():
    data = user("Start") + assistant(3, gitBranch="aaaa") + filler(9000)
    other = data.replace(b'"gitBranch":"aaaa"', b'"gitBranch":"bbbb"')
    assert observe(other, stored(observe(data))) == observe(other)


def test_a_longer_file_with_another_beginning_is_read_anew():
    data = user("Start") + assistant(3)
    other = user("Quite another start") + assistant(3) + assistant(4)
    assert observe(other, stored(observe(data))) == observe(other)


def test_a_longer_file_that_differs_before_the_end_of_the_last_reading_is_read_anew():
    data = user("Start") + filler(5000) + assistant(3, gitBranch="aaaa")
    other = data.replace(b'"gitBranch":"aaaa"', b'"gitBranch":"bbbb"') + title("Name")
    assert observe(other, stored(observe(data))) == observe(other)


def rewritten(data, was, now):
    """A reading that looked through all of a large file, read on after its middle was rewritten, and looked through."""
    filled = fill(data, observe(data))
    other = data.replace(was, now)
    assert other != data
    return fill(other, observe(other, stored(filled)))


def test_a_rewritten_middle_tells_its_new_name():
    data = user("Start") + filler(3 << 20) + title("Was") + filler(3 << 20, 2) + assistant(60)
    assert facts(rewritten(data, b'"Was"', b'"Now it is"'))["custom_title"] == "Now it is"
    assert facts(rewritten(data, filler(1000) + title("Was"), title("Now it is")))["custom_title"] == "Now it is"


def test_a_name_that_was_taken_out_of_the_middle_is_forgotten_once_all_was_looked_through():
    data = title("Early") + user("Start") + filler(3 << 20) + title("Was") + filler(3 << 20, 2) + assistant(60)
    reading = rewritten(data, title("Was"), b"")
    assert facts(reading)["custom_title"] == "Early"
    assert facts(reading) == facts(fill(data.replace(title("Was"), b""), observe(data.replace(title("Was"), b""))))


def test_a_small_file_that_was_rewritten_as_a_large_one_keeps_no_name_of_its_own():
    small = user("Start" * 200) + title("Was") + assistant(3)
    large = user("Start" * 200) + filler(3 << 20) + assistant(60)
    assert "custom_title" not in facts(observe(large, stored(observe(small))))


@pytest.mark.parametrize("state", [b"", b"nonsense", b"[]", b'{"end":1}', b'{"unknown":2}'])
def test_a_state_that_cannot_be_understood_means_reading_anew(state):
    data = user("Start") + assistant(3)
    assert observe(data, Previous(state, {ID: {}})) == observe(data)


# -- large files: head, tail, gap --------------------------------------------------------------------------------------

HEAD = user("Start the long work") + title("Named early")
GAP = filler(3 << 20)


def test_a_large_file_is_told_by_its_two_ends():
    data = HEAD + GAP + user("go on", 50, gitBranch="late") + title("Guess", "ai-title", "aiTitle")
    reading = observe(data)
    row = session(data, reading)
    assert (row.first_prompt, row.branch, row.title, row.title_from) == (
        "Start the long work",
        "late",
        "Named early",
        "custom",
    )
    assert 1 << 20 < reading.gap_bytes < 3 << 20


def test_a_newer_name_at_the_end_wins_over_one_at_the_beginning():
    data = HEAD + GAP + assistant(60) + title("Named late")
    assert facts(observe(data))["custom_title"] == "Named late"


def test_first_facts_never_come_from_behind_a_gap():
    data = title("x", "ai-title", "aiTitle") + filler(2 << 20) + user("Not the first one", 50)
    assert "first_prompt" not in facts(observe(data))


def test_the_gap_pass_keeps_what_was_told_between_head_and_gap():
    data = HEAD + filler(2 << 20) + title("Named later") + assistant(60)
    reading = observe(data[: 1 << 19])
    for end in (1 << 20, 3 << 19, len(data)):
        reading = observe(data[:end], stored(reading))
    data += filler(17 << 20, 70) + assistant(80)
    reading = observe(data, stored(reading))
    assert facts(fill(data, reading))["custom_title"] == "Named later"


def test_the_gap_pass_finds_a_first_prompt_far_in():
    for between in (filler(2 << 20), b""):
        data = filler(2 << 20) + user("The first one", 50) + between + filler(2 << 20) + user("Not this one", 60)
        assert facts(fill(data, observe(data)))["first_prompt"] == "The first one"


def test_the_gap_pass_finds_a_first_prompt_among_the_last_lines():
    data = filler(3 << 20) + user("The first one", 50) + assistant(60)
    assert facts(fill(data, observe(data)))["first_prompt"] == "The first one"
    assert facts(fill(data[:-1], observe(data[:-1])))["first_prompt"] == "The first one"


def test_a_folder_with_a_name_of_its_own_leads_to_the_first_directory_of_a_large_file():
    source = PROVIDER.claim(f"/home/sam/.claude/projects/shared/{ID}.jsonl")
    data = HEAD + GAP.replace(b"/home/sam/app", b"/home/sam/app/deep") + user("go on", 50, cwd="/home/sam/app/deep")
    reading = PROVIDER.observe(source, io.BytesIO(data), len(data), None)
    row = PROVIDER.merge([Observation(source, Fingerprint(1, 1, len(data), 1, 1), ID, facts(reading))])
    assert row.cwd == "/home/sam/app"


def test_copies_of_old_records_at_the_end_do_not_hide_the_newest_time():
    newest = assistant(500)
    copies = filler(300_000)
    for data in (HEAD + newest + GAP + copies, HEAD + GAP + newest + GAP + copies):
        reading = fill(data, observe(data))
        assert facts(reading)["updated_ms"] == int(START.timestamp() * 1000) + 500_000


def test_the_tail_grows_until_a_conversation_record_with_a_time_is_in_it():
    note = line(type="system", subtype="turn_duration", uuid="s", timestamp=stamp(99), cwd="/home/sam/app")
    data = HEAD + GAP + assistant(60, gitBranch="late") + note * 2_000
    assert facts(observe(data))["updated_ms"] == facts(observe(assistant(60)))["updated_ms"]
    assert facts(observe(data))["branch"] == "late"


def test_the_gap_pass_finds_a_name_far_from_both_ends():
    data = user("Start") + filler(5 << 20) + title("Far away") + filler(5 << 20, 2) + assistant(60)
    reading = observe(data)
    assert "custom_title" not in facts(reading)
    filled = fill(data, reading)
    assert facts(filled)["custom_title"] == "Far away"
    assert filled.gap_bytes == 0


def test_the_gap_pass_takes_the_newest_of_several_names():
    data = (
        HEAD + filler(2 << 20) + title("Older") + filler(6 << 20) + title("Newer") + filler(2 << 20, 2) + assistant(60)
    )
    assert facts(fill(data, observe(data)))["custom_title"] == "Newer"


def test_the_gap_pass_takes_a_newer_name_from_right_behind_a_known_one():
    data = user("Start") + filler(2 << 20) + title("Known")
    reading = observe(data)
    data += filler(1000) + title("Newer") + filler(17 << 20, 2) + assistant(60)
    reading = observe(data, stored(reading))
    assert facts(reading)["custom_title"] == "Known"
    assert facts(fill(data, reading))["custom_title"] == "Newer"


def test_a_file_that_outgrew_its_first_reading_at_once_is_known_as_well_as_a_new_one():
    small = title("Only a name", "ai-title", "aiTitle")
    data = small + user("The first prompt") + title("Named early") + filler(18 << 20) + assistant(60)
    assert facts(observe(data, stored(observe(small)))) == facts(observe(data))
    assert facts(observe(data))["first_prompt"] == "The first prompt"


def test_the_gap_pass_never_replaces_what_the_end_says():
    data = HEAD + filler(2 << 20) + title("In between") + filler(2 << 20) + assistant(60) + title("At the end")
    assert facts(fill(data, observe(data)))["custom_title"] == "At the end"


def test_the_gap_pass_finds_modes_and_moves():
    far = line(type="permission-mode", permissionMode="plan", sessionId=ID) + line(
        type="worktree-state", worktreeSession={"originalCwd": "/srv/app", "worktreePath": "/home/sam/app"}
    )
    data = user("Start") + filler(2 << 20) + far + filler(2 << 20) + assistant(60)
    row = session(data, fill(data, observe(data)))
    assert (row.approval, row.repo) == ("plan", "/srv/app")


def test_a_gap_larger_than_the_budget_is_looked_through_at_its_end_and_then_given_up():
    data = HEAD + filler(2 << 20) + title("Too far") + filler(4 << 20) + title("Near") + filler(2 << 20) + assistant(60)
    file = Counting(data)
    reading = observe(data)
    filled = PROVIDER.fill(SOURCE, file, stored(reading), 3 << 20)
    assert facts(filled)["custom_title"] == "Near"
    assert filled.gap_bytes == 0
    assert file.read_bytes <= (3 << 20) + 8192


def test_a_name_from_the_gap_stays_when_the_file_grows_is_touched_or_is_cut_at_its_end():
    data = user("Start") + filler(3 << 20) + title("Far away") + filler(3 << 20, 2) + assistant(60)
    filled = fill(data, observe(data))
    for changed in (data + assistant(61), data, data[: -len(assistant(60))]):
        assert facts(observe(changed, stored(filled)))["custom_title"] == "Far away"


def test_a_touched_file_is_not_looked_through_again():
    data = user("Start") + filler(4 << 20) + assistant(60)
    assert observe(data, stored(fill(data, observe(data)))).gap_bytes == 0


def test_a_name_read_in_passing_stays_when_a_large_file_without_a_gap_is_touched():
    data = user("Start") + filler(700_000)
    reading = observe(data)
    for more in (filler(900_000), title("In the middle"), filler(900_000), assistant(60)):
        data += more
        reading = observe(data, stored(reading))
    assert reading.gap_bytes == 0
    assert facts(observe(data, stored(reading)))["custom_title"] == "In the middle"


def test_filling_a_gap_of_a_file_that_was_rewritten_meanwhile_changes_nothing():
    data = user("Start") + filler(4 << 20) + assistant(60)
    reading = observe(data)
    other = user("Else!") + filler(4 << 20) + title("Wrong") + assistant(60)
    assert fill(other, reading).facts == reading.facts


def test_the_provisional_last_line_survives_the_gap_pass():
    data = user("Start") + filler(2 << 20) + title("Far away") + filler(2 << 20) + assistant(60) + title("Now")[:-1]
    filled = fill(data, observe(data))
    assert facts(filled)["custom_title"] == "Now"
    assert facts(observe(data + b"\n", stored(filled)))["custom_title"] == "Now"


@contextlib.contextmanager
def small_budgets():
    """Budgets of some hundred bytes, so that small files have gaps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "HEAD_BYTES", 900)
        patch.setattr(chunks, "TAIL_BYTES", 300)
        patch.setattr(chunks, "TAIL_MAX_BYTES", 1200)
        patch.setattr(chunks, "APPEND_MAX_BYTES", 1500)
        patch.setattr(transcript, "GAP_BLOCK_BYTES", 700)
        yield


def newest_names(data):
    found = {}
    for text in data.split(b"\n")[:-1]:
        record = json.loads(text)
        for fact, kind, key in (
            ("custom_title", "custom-title", "customTitle"),
            ("ai_title", "ai-title", "aiTitle"),
            ("agent_name", "agent-name", "agentName"),
        ):
            if record["type"] == kind:
                found[fact] = record[key]
    return found


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
@example(seed=1501)
@example(seed=4379)
@example(seed=20620)
@example(seed=94607)
@example(seed=3456389)
@example(seed=178057009)
def test_across_gaps_nothing_known_is_lost_and_filling_finds_every_newest_name(seed):
    choice = random.Random(seed)
    data = user("Start") * choice.randint(0, 1)
    reading = None
    with small_budgets():
        for step in range(choice.randint(1, 8)):
            data += records_of(choice, step)
            before = {} if reading is None else facts(reading)
            reading = observe(data, reading and stored(reading))
            fresh = facts(observe(data))
            assert (before.keys() | fresh.keys()) - {"first_cwd", "readable", "command"} <= facts(reading).keys()
            assert facts(reading).get("updated_ms", 0) >= fresh.get("updated_ms", 0)
            for name in NAMES & fresh.keys():
                assert data.find(facts(reading)[name].encode()) >= data.find(fresh[name].encode())
            if choice.random() < 0.4:
                reading = fill(data, reading)
                assert reading.gap_bytes == 0
                assert {k: v for k, v in facts(reading).items() if k in NAMES} == newest_names(data)


def records_of(choice, step):
    data = b""
    for _ in range(choice.choice((0, 1, 3, 12))):
        kind, key = choice.choice(
            (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("agent-name", "agentName"))
        )
        name = title(f"T{choice.random()}", kind, key)
        data += choice.choice((user(f"p{step}", step), assistant(step), name))
    return data


# -- over-long lines ---------------------------------------------------------------------------------------------------

BIG = "x" * 400_000


def test_a_first_prompt_on_an_over_long_line_is_known_with_its_folder_branch_and_time():
    row = session(user("Read this log: " + BIG) + assistant(5))
    assert row.first_prompt.startswith("Read this log: xxx")
    assert (row.cwd, row.branch, row.created_ms) == ("/home/sam/app", "main", int(START.timestamp() * 1000))


def test_a_prompt_behind_a_large_image_is_known():
    image = {"type": "image", "source": {"type": "base64", "data": BIG}}
    row = session(user([image, {"type": "text", "text": "What is wrong here?"}]) + assistant(5))
    assert row.first_prompt == "What is wrong here?"


def test_the_answer_of_a_tool_on_an_over_long_line_is_no_prompt():
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": BIG}]}
    block = {"type": "text", "text": "not typed"}
    assert session(user([result, block]) + user("Typed", 5)).first_prompt == "Typed"


def test_a_transcript_that_is_one_enormous_line_is_a_session():
    class Huge:
        """A user record of 1 GiB; only what is read exists."""

        first = user("Look: ")[: user("Look: ").index(b'"},"type"')]
        last = user("Look: ")[user("Look: ").index(b'"},"type"') :]
        size = 1 << 30
        at = read_bytes = 0

        def seek(self, offset, whence=0):
            self.at = offset
            return offset

        def read(self, size=-1):
            end = min(self.size, self.at + min(size, 1 << 20))
            middle = self.size - len(self.last)
            part = self.first[self.at : end]
            part += b"x" * (max(0, min(end, middle) - max(self.at, len(self.first))))
            part += self.last[max(0, self.at - middle) : max(0, end - middle)]
            self.at = end
            self.read_bytes += len(part)
            return part

    file = Huge()
    reading = PROVIDER.observe(SOURCE, file, file.size, None)
    row = session(b"x", reading)
    assert isinstance(row, Session)
    assert row.first_prompt.startswith("Look: xxx")
    assert (row.cwd, row.branch, row.updated_ms) == ("/home/sam/app", "main", int(START.timestamp() * 1000))
    assert file.read_bytes < 32 << 20


def test_records_behind_a_line_too_long_to_follow_tell_the_last_facts():
    enormous = line(
        cwd="/home/sam/app", gitBranch="early", permissionMode="plan", type="user", timestamp=stamp(5), uuid="u5",
        message={"role": "user", "content": "x" * (10 << 20)},
    )  # fmt: skip
    later = line(type="system", gitBranch="late", uuid="s") + line(type="permission-mode", permissionMode="default")
    row = session(user("Start") + enormous + later)
    assert (row.branch, row.approval) == ("late", "default")


def test_a_name_glued_to_an_over_long_line_is_known():
    whole = user("See: " + BIG)[:-1]
    for torn in (whole, whole[:300_000]):
        assert session(user("Start") + torn + title("Name")).title == "Name"


def test_a_byte_order_mark_before_an_over_long_line_is_passed_over():
    block = {"type": "text", "text": "What is wrong here?"}
    image = {"type": "image", "source": {"type": "base64", "data": BIG}}
    assert session(b"\xef\xbb\xbf" + user([block, image])).first_prompt == "What is wrong here?"


def test_an_over_long_last_line_in_the_old_order_gives_branch_and_time():
    old = line(
        cwd="/home/sam/app", gitBranch="late", version="2.0.61", type="user", timestamp=stamp(70), uuid="u",
        message={"role": "user", "content": BIG},
    )  # fmt: skip
    row = session(user("Start") + old)
    assert (row.branch, row.updated_ms) == ("late", int(START.timestamp() * 1000) + 70_000)
