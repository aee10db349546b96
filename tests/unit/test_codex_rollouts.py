"""Reading rollouts: every generation, lines of any length, files that grow, and the gap in large ones."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiond import jsonl
from sessiond.model import Excluded, Previous, Reason
from sessiond.providers.codex import rollouts
from tests.kit.codex_home import (
    CREATED,
    CREATED_MS,
    CWD,
    ENDED_MS,
    CodexHome,
    answer,
    conversation,
    lines,
    meta,
    record,
    touch,
    turn,
    uid,
    user,
)

A = uid(1)
LATER = "2026-09-03T00:00:00.000Z"
LATER_MS = 1_788_393_600_000


@pytest.fixture
def codex(tmp_path):
    return CodexHome(tmp_path / "codex")


def read(data, previous=None):
    return rollouts.observe(io.BytesIO(data), len(data), previous, A)


def read_in_steps(*ends, data):
    previous = None
    for end in ends:
        thread_id, facts, state = read(data[:end], previous)
        previous = Previous(state.pack(), {thread_id: json.loads(json.dumps(facts))})
    return facts, state


def noise(size, **fields):
    """Records of no interest, of about so many bytes in all."""
    one = lines([record("response_item", {"type": "function_call_output", "output": "y" * 20_000}, **fields)])
    return one * (size // len(one) + 1)


# -- before the envelope -----------------------------------------------------------------------------------------------

TOLD = (
    "<environment_context>\nCurrent working directory: /Users/alex/old\nApproval policy: never\n</environment_context>"
)
TAGGED = "<environment_context>\n  <cwd>/Users/alex/old</cwd>\n</environment_context>"


def item(role, text):
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def header_before_the_envelope(**fields):
    return {"id": A, "timestamp": "2025-08-20T10:00:00.000Z", "instructions": None, **fields}


OLD_CREATED_MS = 1_755_684_000_000


def assert_history(session, **fields):
    expected = {"title": "Port the CLI", "first_prompt": "Port the CLI", "created_ms": OLD_CREATED_MS}
    assert {name: getattr(session, name) for name in expected | fields} == expected | fields
    assert (session.resumable, session.archived, session.interactive, session.version) == (False, False, True, None)


@pytest.mark.parametrize(
    "name",
    [f"rollout-2025-05-10-{A}.jsonl", f"rollout-2025-06-01T09-10-11-{A}.jsonl"],
)
def test_flat_files_of_the_first_rust_builds_are_history(codex, name):
    path = codex.path / "sessions" / name
    path.write_bytes(lines([header_before_the_envelope(), item("user", "Port the CLI"), item("assistant", "Done")]))
    touch(path, 1_755_690_000_000)
    assert_history(codex.session(A), cwd=None, branch=None, updated_ms=1_755_690_000_000, path=str(path))


@pytest.mark.parametrize("context", [TOLD, TAGGED])
def test_files_with_bare_records_tell_branch_and_folder(codex, context):
    git = {"commit_hash": "abc", "branch": "port", "repository_url": "https://u:secret@host/x.git"}
    codex.rollout(
        A,
        [header_before_the_envelope(git=git), {"record_type": "state"}, item("user", context), {"record_type": "state"},
         item("user", "<user_instructions>\n\nbe brief</user_instructions>"), item("user", "Port the CLI"),
         {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}, item("assistant", "Done")],
    )  # fmt: skip
    assert_history(codex.session(A), cwd="/Users/alex/old", branch="port")
    assert "secret" not in json.dumps(codex.observations()[A][0].facts)


@pytest.mark.parametrize("indent", [2, None])
def test_documents_of_the_typescript_builds_are_history(codex, indent):
    path = codex.path / "sessions" / f"rollout-2025-04-20-{A}.json"
    document = {"session": header_before_the_envelope(), "items": [item("user", TOLD), item("user", "Port the CLI")]}
    path.write_text(json.dumps(document, indent=indent))
    touch(path, 1_755_690_000_000)
    assert_history(codex.session(A), cwd="/Users/alex/old", updated_ms=1_755_690_000_000)


def test_a_document_that_is_cut_off_still_tells_its_beginning(codex):
    document = {
        "session": header_before_the_envelope(),
        "items": [item("user", "Port the CLI"), item("user", "x" * 999)],
    }
    path = codex.path / "sessions" / f"rollout-2025-04-20-{A}.json"
    path.write_text(json.dumps(document, indent=2)[:-500])
    assert_history(codex.session(A))


def test_a_large_document_is_read_no_further_than_its_first_prompt(codex):
    items = [item("user", "Port the CLI")] + [item("assistant", "é" * 100_000)] * 100
    data = json.dumps({"session": header_before_the_envelope(), "items": items}, ensure_ascii=False, indent=1).encode()
    file = io.BytesIO(data)
    source = codex.provider.claim(str(codex.path / "sessions" / f"rollout-2025-04-20-{A}.json"))
    codex.provider.observe(source, file, len(data), None)
    assert file.tell() < 2 << 20


# -- long lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [100_000, 300_000, 2_000_000, 7_000_000, 12_000_000])
def test_a_first_line_of_any_length_tells_the_thread(size):
    instructions = {"text": 'say "hi"\n' + "\\" * 999 + "z" * size}
    first = meta(A, forked_from_id=uid(9), base_instructions=instructions)
    thread_id, facts, _ = read(lines([first, turn(model="gpt-9"), user("Hi"), answer()]))
    assert thread_id == A
    assert (facts["cwd"], facts["source"], facts["forked_from"], facts["created_ms"]) == (
        CWD,
        "cli",
        uid(9),
        CREATED_MS,
    )
    assert facts["updated_ms"] == ENDED_MS
    assert facts["model"] == "gpt-9"


@pytest.mark.parametrize("size", [100_000, 300_000, 2_000_000, 7_000_000])
def test_git_facts_behind_long_instructions_are_found(size):
    first = meta(A, base_instructions={"text": "z" * size}, history_mode="paginated", git={"branch": "main"})
    _, facts, _ = read(lines([first, turn(), user("Hi"), answer()]))
    assert (facts["branch"], facts["prompt"]) == ("main", "Hi")


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_git_facts_behind_long_instructions_are_found_however_they_are_spaced(separators):
    first = meta(A, base_instructions={"text": "z" * 300_000}, git={"commit_hash": "a", "branch": "main"})
    _, facts, _ = read(json.dumps(first, separators=separators).encode() + b"\n" + lines([user("Hi")]))
    assert facts["branch"] == "main"


def test_a_later_header_of_any_length_corrects_the_branch():
    later = meta(A, base_instructions={"text": "z" * 300_000}, git={"branch": "later"})
    _, facts, _ = read(lines([meta(A, git={"branch": "first"}), user("Hi"), later]))
    assert facts["branch"] == "later"


def test_a_branch_in_the_text_of_the_instructions_is_not_taken(codex):
    first = meta(A, base_instructions={"text": "z" * 300_000 + ' "git":{"branch":"wrong"} '})
    _, facts, _ = read(lines([first, turn(), user("Hi"), answer()]))
    assert "branch" not in facts


@pytest.mark.parametrize("size", [1000, 400_000, 3_000_000])
def test_a_prompt_of_any_length_is_told_by_its_beginning(size):
    _, facts, _ = read(lines([meta(A), turn(), user("Look at this:\n" + "log line\n" * (size // 9)), answer()]))
    assert facts["prompt"].startswith("Look at this: log line log line")
    assert facts["model"] == "gpt-5"


def said(*parts):
    content = [{"type": "image", "image_url": part} if part.startswith("data:") else {"type": "text", "text": part}
               for part in parts]  # fmt: skip
    return record("event_msg", {"type": "item_completed", "item": {"type": "UserMessage", "content": content}})


@pytest.mark.parametrize("size", [10, 400_000, 3_000_000])
@pytest.mark.parametrize("image_first", [True, False])
def test_a_prompt_beside_an_image_of_any_size_is_its_text(size, image_first):
    parts = ("data:" + "A" * size, "What is this?")
    _, facts, _ = read(lines([meta(A), said(*parts if image_first else parts[::-1]), answer()]))
    assert facts["prompt"] == "What is this?"


def test_an_image_beside_a_request_left_empty_is_no_prompt():
    _, facts, _ = read(lines([meta(A), said("data:AA", "# Context\n## My request for Codex:\n "), user("Then this")]))
    assert facts["prompt"] == "Then this"


def test_a_last_line_longer_than_the_tail_hides_nothing(codex):
    big = record("response_item", {"type": "function_call_output", "output": "y" * 3_000_000}, LATER)
    _, facts, _ = read(lines([meta(A), turn(), user("Hi")]) + noise(1_500_000) + lines([big]))
    assert facts["prompt"] == "Hi"
    assert facts["updated_ms"] == LATER_MS


# -- growing files -----------------------------------------------------------------------------------------------------

RECORDS = st.lists(
    st.one_of(
        st.builds(user, st.sampled_from(["One", "Two", "## My request for Codex:", "", "<b>"])),
        st.builds(lambda m, e, c: turn(model=m, effort=e, cwd=c),
                  st.sampled_from(["m1", "m2", None]), st.sampled_from(["low", None]), st.sampled_from(["/a", None])),
        st.builds(lambda: record("event_msg", {"type": "thread_settings_applied",
                                               "thread_settings": {"model": "m3", "model_provider_id": "p"}})),
        st.builds(lambda t: answer("ok", t), st.sampled_from([CREATED, LATER, "no time"])),
        st.builds(lambda r, t: record("response_item", item(r, t)),
                  st.sampled_from(["user", "assistant", "developer"]), st.sampled_from(["Three", TAGGED, ""])),
        st.builds(lambda b, i: meta(i, git={"branch": b}), st.sampled_from(["b1", None]), st.sampled_from([A, uid(2)])),
        st.builds(lambda n: record("event_msg", {"type": "thread_name_updated", "thread_name": n}),
                  st.sampled_from(["Name", "Other"])),
        st.builds(lambda o: record("event_msg", {"type": "thread_goal_updated", "goal": {"objective": o}}),
                  st.sampled_from(["Goal", ""])),
        st.builds(item, st.sampled_from(["user", "assistant"]), st.sampled_from(["Four", TOLD])),
        st.binary(max_size=20),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([meta(A), header_before_the_envelope(), answer(), b"junk"]), RECORDS, st.data())
def test_reading_on_equals_reading_the_whole(first, records, data):
    content = lines([first, *records])
    ends = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=4)))
    continued, _ = read_in_steps(*ends, len(content), data=content)
    assert continued == read(content)[1]


def test_only_the_appended_bytes_are_read_again():
    class Counting(io.BytesIO):
        count = 0

        def read(self, size=-1):
            data = super().read(size)
            Counting.count += len(data)
            return data

    start = lines(conversation(A)) + noise(500_000)
    thread_id, facts, state = read(start)
    grown = start + lines([answer("more", LATER)])
    Counting.count = 0
    file = Counting(grown)
    _, facts, _ = rollouts.observe(file, len(grown), Previous(state.pack(), {thread_id: facts}), A)
    assert facts["updated_ms"] == LATER_MS
    assert Counting.count <= len(grown) - len(start) + 8192


@pytest.mark.parametrize("change", ["shorter", "same size", "longer"])
def test_a_rewritten_file_is_read_anew(change):
    old = lines(conversation(A, "Old one"))
    thread_id, facts, state = read(old)
    prompt = {"shorter": "Short", "same size": "New one", "longer": "A longer one"}[change]
    _, facts, _ = read(lines(conversation(A, prompt)), Previous(state.pack(), {thread_id: facts}))
    assert facts["prompt"] == prompt


def test_of_an_unfinished_last_line_that_is_no_whole_record_nothing_counts():
    torn = lines([record("event_msg", user("Torn")["payload"], LATER)]).rstrip(b"\n")
    for end in range(1, len(torn)):
        _, facts, _ = read(lines([meta(A), turn()]) + torn[:end])
        assert "prompt" not in facts
        assert facts["updated_ms"] == CREATED_MS


def test_an_unfinished_last_line_counts_when_it_is_whole_and_is_not_consumed():
    data = lines(conversation(A)) + lines([answer("more", LATER)]).rstrip(b"\n")
    _, facts, state = read(data)
    assert facts["updated_ms"] == LATER_MS
    assert state.offset == len(lines(conversation(A)))


# -- the gap -----------------------------------------------------------------------------------------------------------


def test_between_head_and_tail_a_gap_is_left():
    data = lines(conversation(A)) + noise(4 << 20) + lines([turn(model="last"), answer("end", LATER)])
    _, facts, state = read(data)
    assert (facts["prompt"], facts["model"], facts["updated_ms"]) == ("Fix the build", "last", LATER_MS)
    assert 2 << 20 < state.gap_bytes < len(data) - jsonl.HEAD_BYTES


def filled(data):
    thread_id, facts, state = read(data)
    assert state.gap_bytes
    return rollouts.fill(io.BytesIO(data), thread_id, facts, state, 64 << 20)


def test_the_gap_tells_a_first_prompt_that_lies_behind_the_head():
    data = lines([meta(A), turn()]) + noise(2 << 20) + lines([user("Late prompt")]) + noise(2 << 20)
    facts, state = filled(data)
    assert facts["prompt"] == "Late prompt"
    assert state.gap_bytes == 0


def test_a_line_beyond_all_budgets_does_not_end_the_look_into_the_gap():
    huge = record("response_item", {"type": "message", "role": "user", "image_url": "A" * (12 << 20)})
    data = lines([meta(A), huge, user("Behind it")]) + noise(2 << 20)
    assert filled(data)[0]["prompt"] == "Behind it"


def test_a_first_prompt_in_the_tail_is_found_when_the_gap_holds_none():
    data = lines([meta(A), turn()]) + noise(4 << 20) + lines([user("At the end"), turn(), answer()])
    assert filled(data)[0]["prompt"] == "At the end"


def test_a_first_prompt_that_is_appended_behind_a_gap_is_found():
    data = lines([meta(A), turn()]) + noise(4 << 20) + lines([turn(), answer()])
    facts, state = filled(data)
    assert "prompt" not in facts
    _, facts, _ = read(data + lines([user("Appended")]), Previous(state.pack(), {A: facts}))
    assert facts["prompt"] == "Appended"


def test_the_gap_tells_when_a_last_line_larger_than_the_tail_was_written():
    huge = record("response_item", {"type": "function_call_output", "output": "y" * (18 << 20)}, LATER)
    assert filled(lines([*conversation(A), huge]))[0]["updated_ms"] == LATER_MS


def test_the_gap_tells_settings_unless_the_tail_did():
    middle = noise(2 << 20) + lines([turn(model="middle")]) + noise(2 << 20)
    assert filled(lines(conversation(A)) + middle)[0]["model"] == "middle"
    assert filled(lines(conversation(A)) + middle + lines([turn(model="last"), answer()]))[0]["model"] == "last"


def test_the_gap_tells_a_name_unless_the_tail_did():
    def named(name):
        return lines([record("event_msg", {"type": "thread_name_updated", "thread_name": name})])

    middle = noise(2 << 20) + named("middle") + noise(2 << 20)
    assert filled(lines(conversation(A)) + named("first") + middle)[0]["name"] == "middle"
    assert filled(lines(conversation(A)) + middle + named("last"))[0]["name"] == "last"


def test_the_gap_tells_a_branch_unless_the_tail_did():
    def corrected(branch):
        return lines([meta(A, git={"branch": branch})])

    start = lines(conversation(A, git={"branch": "first"})) + noise(2 << 20)
    assert filled(start + corrected("middle") + noise(2 << 20))[0]["branch"] == "middle"
    assert filled(start + corrected("middle") + noise(2 << 20) + corrected("last"))[0]["branch"] == "last"


def test_the_gap_tells_each_setting_that_the_tail_did_not_state():
    def applied(**settings):
        return record("event_msg", {"type": "thread_settings_applied", "thread_settings": settings})

    middle = noise(2 << 20) + lines([turn(model="m1", effort="high"), applied(model_provider_id="middle")])
    data = lines(conversation(A)) + middle + noise(2 << 20)
    facts, _ = filled(data + lines([applied(model="m2"), answer()]))
    assert (facts["model"], facts["effort"], facts["provider"]) == ("m2", "high", "middle")
    facts, _ = filled(data + lines([applied(model_provider_id="last"), answer()]))
    assert (facts["model"], facts["provider"]) == ("m1", "last")


def test_a_later_gap_is_newer_than_what_an_earlier_tail_told():
    start = lines(conversation(A)) + noise(2 << 20) + lines([turn(model="earlier"), answer()])
    thread_id, facts, state = read(start)
    assert (facts["model"], state.gap_bytes > 0) == ("earlier", True)
    data = start + noise(9 << 20) + lines([turn(model="later")]) + noise(9 << 20)
    _, facts, state = read(data, Previous(state.pack(), {thread_id: facts}))
    facts, _ = rollouts.fill(io.BytesIO(data), thread_id, facts, state, 64 << 20)
    assert facts["model"] == "later"


def test_the_gap_does_not_turn_the_clock_back():
    data = lines(conversation(A)) + noise(4 << 20) + lines([answer("end", LATER)])
    assert filled(data)[0]["updated_ms"] == LATER_MS


def test_what_the_gap_told_survives_growth_and_another_look():
    first, named = (
        lines([record("event_msg", {"type": "thread_name_updated", "thread_name": name})])
        for name in ("First", "Found")
    )
    data = lines(conversation(A)) + first + noise(2 << 20) + named + noise(2 << 20)
    facts, state = filled(data)
    _, again, state = read(data, Previous(state.pack(), {A: facts}))
    assert (again["name"], state.gap_bytes) == ("Found", 0)
    _, grown, state = read(data + lines([answer("end", LATER)]), Previous(state.pack(), {A: again}))
    assert (grown["name"], grown["updated_ms"], state.gap_bytes) == ("Found", LATER_MS, 0)


def looked_at_again(data):
    """The facts and the state of a file that was filled, and read once more though nothing changed."""
    facts, state = filled(data)
    _, again, state = read(data, Previous(state.pack(), {A: facts}))
    assert again == facts
    return again, state


def test_another_look_does_not_bring_back_what_the_gap_took_away():
    start = lines(conversation(A, git={"branch": "first"}))
    facts, _ = looked_at_again(start + noise(2 << 20) + lines([meta(A, git={})]) + noise(2 << 20))
    assert "branch" not in facts


def test_after_another_look_a_first_prompt_that_is_appended_is_still_found():
    data = lines([meta(A), turn()]) + noise(4 << 20) + lines([turn(), answer()])
    facts, state = looked_at_again(data)
    _, facts, _ = read(data + lines([user("Appended")]), Previous(state.pack(), {A: facts}))
    assert facts["prompt"] == "Appended"


def test_another_look_does_not_take_a_message_for_the_prompt_when_there_are_events():
    message = record("response_item", item("user", "Not typed by anyone"))
    data = lines([meta(A), message]) + noise(2 << 20) + lines([user("Typed")]) + noise(2 << 20)
    assert looked_at_again(data)[0]["prompt"] == "Typed"


def test_very_much_appended_at_once_leaves_a_gap():
    start = lines(conversation(A))
    thread_id, facts, state = read(start)
    data = start + noise(18 << 20) + lines([answer("end", LATER)])
    _, facts, state = read(data, Previous(state.pack(), {thread_id: facts}))
    assert facts["updated_ms"] == LATER_MS
    assert state.gap_from == len(start)
    assert state.gap_to < len(data)


# -- copied history ----------------------------------------------------------------------------------------------------


def test_a_fork_does_not_take_the_name_of_the_thread_it_was_copied_from():
    def named(thread_id, name):
        return record("event_msg", {"type": "thread_name_updated", "thread_id": thread_id, "thread_name": name})

    copied = [meta(A, forked_from_id=uid(9)), meta(uid(9)), user("Hi"), named(uid(9), "Of the parent")]
    assert "name" not in read(lines(copied))[1]
    assert read(lines([*copied, named(A, "Own"), named(uid(9), "Of the parent")]))[1]["name"] == "Own"


# -- odd files ---------------------------------------------------------------------------------------------------------


def test_a_file_whose_first_line_is_torn_is_the_thread_of_its_name(codex):
    codex.rollout(A, lines([meta(A)])[:60] + b"\n" + lines([turn(), user("Hi"), answer()]))
    assert codex.session(A).title == "Hi"


@pytest.mark.parametrize("before", [b"\n", b" \r\n\n", b"\0" * 80 + b"\n", b"junk\n", lines([meta(A)])[:60] + b"\n"])
def test_damaged_and_blank_lines_before_the_header_do_not_hide_it(codex, before):
    codex.rollout(A, before + lines([meta(A, source={"subagent": "review"}), user("Hi")]))
    assert codex.session(A) == Excluded(Reason.SIDECHAIN)


def test_damaged_lines_before_an_old_header_do_not_make_it_a_new_one(codex):
    codex.rollout(A, b"\0\0\n" + lines([header_before_the_envelope(), item("user", "Port the CLI")]))
    assert_history(codex.session(A))


@pytest.mark.parametrize("before", [b"", b"junk\n"])
def test_bare_records_without_any_header_are_of_before_the_envelope(codex, before):
    codex.rollout(A, before + lines([item("user", "Port the CLI")]))
    assert not codex.session(A).resumable


def test_where_the_own_header_was_lost_that_of_the_parent_is_not_taken_for_it(codex):
    codex.rollout(A, b"junk\n" + lines([meta(uid(9), source="exec"), user("Hi")]))
    assert list(codex.sessions()) == [A]
    assert codex.session(A).interactive


def test_a_header_is_still_found_when_blank_lines_were_read_before_it():
    data = b"\n\n" + lines(conversation(A))
    facts, _ = read_in_steps(1, 2, len(data), data=data)
    assert (facts["created_ms"], facts["prompt"]) == (CREATED_MS, "Fix the build")


@pytest.mark.parametrize("glued", [0, 1, 2])
def test_records_that_share_a_line_count_each(glued):
    parts = [lines([r]) for r in (meta(A), user("Hi"), turn(model="m9"), answer())]
    parts[glued] = parts[glued].rstrip(b"\n")
    _, facts, _ = read(b"".join(parts))
    assert (facts["created_ms"], facts["prompt"], facts["model"]) == (CREATED_MS, "Hi", "m9")


def test_a_file_that_tells_no_id_anywhere_is_a_problem_and_no_session(codex):
    path = codex.path / "sessions" / "rollout-something.jsonl"
    path.write_bytes(lines([user("Hi")]))
    source = codex.provider.claim(str(path))
    reading = codex.provider.observe(source, io.BytesIO(path.read_bytes()), path.stat().st_size, None)
    assert reading.facts == {}
    assert "thread id" in reading.problem


def test_the_id_is_the_payloads_and_not_that_of_the_agent_tree():
    thread_id, _, _ = read(lines([meta(A, session_id=uid(7)), user("Hi")]))
    assert thread_id == A


def test_an_upper_case_id_is_the_same_thread():
    thread_id, _, _ = read(lines([meta(A.upper()), user("Hi")]))
    assert thread_id == A


def test_a_file_of_newlines_is_unreadable(codex):
    codex.rollout(A, b"\n" * 5000)
    assert codex.session(A) == Excluded(Reason.UNREADABLE)
