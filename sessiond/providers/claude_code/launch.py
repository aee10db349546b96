"""How a Claude Code session is continued: `claude --resume` (docs/formats/claude-code.md, docs/resume.md)."""

from __future__ import annotations

from sessiond.model import Session
from sessiond.resume import Cli, Command, Plan, Setting, chosen_or_kept, home_change, is_word

CLI = Cli(
    program="claude",
    install="npm install -g @anthropic-ai/claude-code",
)

STRICT_MODES = {"plan": "plan", "default": "default", "manual": "default"}
"""Recorded modes that grant no more than a new session asks for -> the spelling that every version takes."""


def command(session: Session, plan: Plan) -> Command:
    """`claude --resume ID` with the mode spelled out: left alone, the CLI restores or defaults to looser ones."""
    settings = {
        "model": _model(session, plan),
        "effort": chosen_or_kept(session.effort, plan.choices.effort),
        "approval": _mode(session.approval, plan.choices.allow_recorded_approvals),
    }
    argv = [CLI.program, "--resume", session.id]
    if plan.choices.fork:
        argv.append("--fork-session")
    for flag, name in (("--model", "model"), ("--effort", "effort"), ("--permission-mode", "approval")):
        passed = settings[name].passed
        if passed is not None:
            argv += [flag, passed]
    return Command(tuple(argv), home_change(session.app, session.home, plan.user_home), settings)


def _model(session: Session, plan: Plan) -> Setting:
    """The CLI restores the model itself (2.1.144), and what is recorded lacks the mark of the 1M context."""
    if plan.choices.model is None and not plan.choices.keep_model and session.model is not None:
        return Setting(session.model, None, "restored", "the CLI restores it; --keep-model passes the recorded name")
    return chosen_or_kept(session.model, plan.choices.model)


def _mode(recorded: str | None, allowed: bool) -> Setting:
    if recorded is None:
        return Setting(None, "default", "default", "none is recorded")
    if recorded in STRICT_MODES:
        return Setting(recorded, STRICT_MODES[recorded], "kept", "it asks at least as much as a new session")
    if not is_word(recorded):
        return Setting(recorded, "default", "withheld", "it does not look like a mode")
    if allowed:
        return Setting(recorded, recorded, "kept", "allowed for this call")
    why = "it may do more without asking; --allow-recorded-approvals keeps it"
    return Setting(recorded, "default", "withheld", why)
