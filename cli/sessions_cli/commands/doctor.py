"""`sessions doctor`: what is wrong, and the command that mends it."""

from __future__ import annotations

import json

import click

from sessions_cli import checks, context, output, render


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="A JSON array of findings.")
def command(*, as_json: bool) -> int:
    """Look for what is wrong with the index, the daemon, the homes and the installation, and say how to mend it.

    Nothing is changed. The exit code is 0 when nothing is wrong, else 9.
    """
    findings = checks.run_all(context.environment())
    if as_json:
        output.write(render.json_array([json.dumps(f._asdict(), ensure_ascii=False) for f in findings]))
    else:
        output.write("".join([_text(f) for f in findings]))
    return 9 if any(f.level == checks.WRONG for f in findings) else 0


def _text(finding: checks.Finding) -> str:
    mend = f"\n       to mend it: {render.printable(finding.mend)}" if finding.mend else ""
    return f"{finding.level:<6} {render.printable(finding.text)}{mend}\n"
