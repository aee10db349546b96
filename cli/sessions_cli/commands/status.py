"""`sessions status`: is the index fresh and the daemon well."""

from __future__ import annotations

import json
from typing import Any

import click

from sessiond import paths
from sessiond.store.reader import Reader
from sessions_cli import context, health, output, render, when
from sessions_cli.health import Health


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def command(*, as_json: bool) -> int:
    """Tell whether the index is fresh and the daemon well. Nothing is refreshed.

    The exit code is 0 when all is well, 9 when something is not, 3 when there is no index.
    """
    folder = paths.state_dir(context.environment())
    with Reader(folder) as reader:
        found = health.of(reader, daemon=context.daemon_runs(folder))
    faults = found.faults()
    if as_json:
        output.write(render.json_safe(json.dumps(_as_object(found, faults), ensure_ascii=False)) + "\n")
    else:
        output.write("".join(f"{name:<10} {render.printable(text)}\n" for name, text in _lines(found, faults)))
    return 9 if faults else 0


def _as_object(found: Health, faults: list[str]) -> dict[str, Any]:
    return {**found._asdict(), "last_full_scan": when.rfc3339(found.last_full_scan_ms) or None, "faults": faults}


def _lines(found: Health, faults: list[str]) -> list[tuple[str, str]]:
    now = when.now_ms()
    lines = [
        ("index", f"{found.path}: {found.state or 'not begun'}, {_counted(found.sessions, 'session')}"),
        ("scanned", when.ago(found.last_full_scan_ms, now)),
    ]
    details = found.details
    if not found.daemon:
        lines.append(("daemon", "none; each command brings the index up to date itself"))
    elif not details:
        lines.append(("daemon", "running; it has not reported yet"))
    else:
        since = when.ago(details["started_ms"], now)
        lines.append(("daemon", f"pid {details['pid']}, version {details['version']}, started {since}"))
        for root in details["roots"]:
            watched = f", {root['watched']} of {root['present']} folders watched" if root["mode"] == "events" else ""
            why = f": {root['why']}" if root.get("why") else ""
            lines.append(("watching", f"{root['path']} ({root['mode']}{watched}){why}"))
        for database in details["databases"]:
            why = f": {database['why']}" if database.get("why") else ""
            lines.append(("database", f"{database['path']} ({database['state']}){why}"))
        lines.append(("events", f"{details['overflows']} overflows, {details['watch_restarts']} restarts of watching"))
        lines.append(("wal", render.size(details["wal_bytes"])))
    if found.gap_files:
        who = "the daemon is at it" if found.daemon else "sessiond --once --gaps does"
        lines.append(("gaps", f"the middle of {_counted(found.gap_files, 'file')} is not looked through yet; {who}"))
    if found.problems:
        lines.append(
            ("problems", f"{_counted(found.problems, 'file')} could not be read as expected; see: sessions doctor")
        )
    if found.note:
        lines.append(("note", found.note))
    lines += [("degraded", fault) for fault in faults]
    return lines


def _counted(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
