"""How a Codex thread is continued: `codex resume` (docs/formats/codex.md, docs/resume.md)."""

from __future__ import annotations

from sessiond.model import DATABASE, Session
from sessiond.providers.codex import rights
from sessiond.resume import Cli, Command, Plan, Setting, chosen_or_kept, home_change, is_word

CLI = Cli(
    program="codex",
    install="npm install -g @openai/codex",
    branch_is="began on",
    verbs={"archive": ("archive",), "unarchive": ("unarchive",), "delete": ("delete", "--force")},
    doubtful_approvals=frozenset({"untrusted"}),
    help_arguments=("resume", "--help"),
)

_ALLOW = "--allow-recorded-approvals keeps it"


def command(session: Session, plan: Plan) -> Command:
    """`codex resume ID`, options before the id, for what follows an id is sent as a prompt."""
    settings = {
        **_mind(session, plan),
        "approval": _approval(session.approval, plan),
        "sandbox": _sandbox(session.sandbox, session.cwd, plan.choices.allow_recorded_approvals),
    }
    passed = {name: setting.passed for name, setting in settings.items()}
    argv = [CLI.program, "fork" if plan.choices.fork else "resume"]
    if passed["model"] is not None:
        argv += ["-m", passed["model"]]
    for key, name in (("model_reasoning_effort", "effort"), ("model_provider", "model_provider")):
        value = passed[name]
        if value is not None:
            argv += ["-c", f"{key}={_toml(value)}"]
    argv += ["-a", passed["approval"] or "on-request", "-s", passed["sandbox"] or "read-only", session.id]
    return Command(tuple(argv), home_change(session.app, session.home, plan.user_home), settings)


def _toml(text: str) -> str:
    """A TOML basic string; the text is visible ASCII (`resume.is_name`)."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _mind(session: Session, plan: Plan) -> dict[str, Setting]:
    """Model, effort and provider: all or none, since passing any one stops the CLI from restoring the others."""
    choices = plan.choices
    recorded = {"model": session.model, "effort": session.effort, "model_provider": session.model_provider}
    if _restores(plan) and choices.model is None and choices.effort is None and not choices.keep_model:
        why = "the CLI restores it from its database; --keep-model passes what is recorded"
        return {name: Setting(value, None, "restored", why) for name, value in recorded.items()}
    chosen = {"model": choices.model, "effort": choices.effort}
    return {name: chosen_or_kept(value, chosen.get(name)) for name, value in recorded.items()}


def _restores(plan: Plan) -> bool:
    """Whether a row of a state database carries model and effort, from which the CLI restores both."""
    return any(
        stated.kind == DATABASE and bool(stated.facts.get("model")) and bool(stated.facts.get("effort"))
        for stated in plan.stated
    )


def _approval(recorded: str | None, plan: Plan) -> Setting:
    if recorded is None:
        return Setting(None, "on-request", "default", "none is recorded")
    word = rights.approval_word(recorded)
    if word == "untrusted" and "on-request" in plan.cli_help and word not in plan.cli_help:
        return Setting(recorded, "on-request", "nearest", "the installed Codex does not take it any more")
    if word in ("untrusted", "on-request"):
        return Setting(recorded, word, "kept", "it asks at least as much as a new thread")
    if word == "on-failure":
        return Setting(recorded, "on-request", "nearest", "Codex reads it as on-request")
    if word == "granular":
        return Setting(recorded, "on-request", "nearest", rights.NO_FLAG)
    if word is None or not is_word(word):
        return Setting(recorded, "on-request", "withheld", "it does not look like an approval policy")
    if plan.choices.allow_recorded_approvals:
        return Setting(recorded, word, "kept", "allowed for this call")
    return Setting(recorded, "on-request", "withheld", f"it may do more without asking; {_ALLOW}")


def _sandbox(recorded: str | None, folder: str | None, allowed: bool) -> Setting:
    if recorded is None:
        return Setting(None, "read-only", "default", "none is recorded")
    word = rights.sandbox_word(recorded, folder)
    if word is None:
        return Setting(recorded, "read-only", "withheld", rights.NO_FLAG)
    if word == "danger-full-access":
        if allowed:
            return Setting(recorded, word, "kept", "allowed for this call")
        return Setting(recorded, "read-only", "withheld", f"it has no bounds; {_ALLOW}")
    if rights.denies_paths(recorded):
        return Setting(recorded, word, "nearest", "its rules that shut off single paths cannot be passed")
    return Setting(recorded, word, "kept", "it has bounds")
