"""Every flag that is passed exists in the help of the real programs; nothing is logged into, no conversation begins.

Opt-in, since it needs both programs: SESSIOND_REAL_CLIS names the folder that holds `claude` and `codex`, for instance
`node_modules/.bin` after `npm install @anthropic-ai/claude-code @openai/codex` in an empty folder.
"""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from sessiond.model import Session
from sessiond.providers.claude_code import launch as claude
from sessiond.providers.codex import launch as codex
from sessiond.resume import Choices, Plan

BIN = os.environ.get("SESSIOND_REAL_CLIS")
pytestmark = pytest.mark.skipif(not BIN, reason="SESSIOND_REAL_CLIS names no folder with claude and codex")

SESSION = Session(app="", id="019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63", home="/h", model_provider="openai")


def help_of(*argv):
    done = subprocess.run(
        [os.path.join(BIN, argv[0]), *argv[1:], "--help"], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def flags(argv):
    return {word for word in argv if word.startswith("-")}


def has(text, word):
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


@pytest.mark.parametrize("fork", [False, True])
def test_claude_knows_every_flag(fork):
    choices = Choices(model="m", effort="high", fork=fork)
    text = help_of("claude")
    argv = claude.command(SESSION, Plan("/", choices)).argv
    assert {flag for flag in flags(argv) if not has(text, flag)} == set()


@pytest.mark.parametrize("mode", sorted(set(claude.STRICT_MODES.values())))
def test_claude_knows_the_modes_that_are_passed(mode):
    assert has(help_of("claude"), mode)


@pytest.mark.parametrize("verb", ["resume", "fork"])
def test_codex_knows_every_flag(verb):
    text = help_of("codex", verb)
    argv = codex.command(SESSION, Plan("/", Choices(model="m", effort="high", fork=verb == "fork"))).argv
    assert argv[1] == verb
    assert {flag for flag in flags(argv) if not has(text, flag)} == set()


@pytest.mark.parametrize("value", ["on-request", "never", "read-only", "workspace-write", "danger-full-access"])
def test_codex_knows_the_values_that_are_passed(value):
    assert has(help_of("codex", "resume"), value)


def test_untrusted_is_passed_exactly_when_codex_knows_it():
    text = help_of("codex", "resume")
    session = Session(app="codex", id=SESSION.id, home="/h", approval="untrusted")
    argv = codex.command(session, Plan("/", cli_help=text)).argv
    assert ("untrusted" in argv) == has(text, "untrusted")


@pytest.mark.parametrize("verb", sorted(codex.CLI.verbs))
def test_codex_knows_every_verb_and_its_flags(verb):
    text = help_of("codex", verb)
    assert f"codex {verb}" in text
    assert {flag for flag in flags(codex.CLI.verbs[verb]) if not has(text, flag)} == set()


@pytest.mark.parametrize("verb", ["archive", "unarchive", "delete"])
def test_claude_has_no_verb_that_we_say_it_lacks(verb):
    assert not re.search(rf"^  {verb}\b", help_of("claude"), re.MULTILINE)
