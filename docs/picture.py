"""Makes docs/terminal.svg: what `sessions` really prints, run on the sample home in a real pseudo-terminal.

.venv/bin/python docs/picture.py
"""

from __future__ import annotations

import html
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "terminal.svg"
COLUMNS = 112
COMMANDS = ("sessions", "sessions checkout", "sessions resume c5e1 --print")
RECORDED = "/Users/alex"
LONG_AGO_S = 1_762_300_000
"""No file counts as open elsewhere."""
STYLES = {"0": "", "1": "font-weight:bold", "2": "fill:#8b949e", "1;33": "fill:#e3b341;font-weight:bold"}
CELL, LINE, MARGIN = 8.4, 19, 16


def stage(folder: Path) -> dict[str, str]:
    """A home with the sample's sessions, whose recorded folders exist; the environment for the client."""
    home = folder / "home"
    slug = re.sub(r"[^a-zA-Z0-9]", "-", str(home))
    for app, name in (("claude-code", ".claude"), ("codex", ".codex")):
        shutil.copytree(ROOT / "fixtures" / app / "sample" / "home", home / name)
    for path in sorted(home.rglob("*"), reverse=True):
        if path.is_file():
            path.write_text(path.read_text().replace(RECORDED, str(home)))
            os.utime(path, (LONG_AGO_S, LONG_AGO_S))
        elif path.name.startswith("-Users-alex"):
            path.rename(path.with_name(path.name.replace("-Users-alex", slug)))
    checkout = home / "code" / "shop-api"
    checkout.mkdir(parents=True)
    git = ["git", "-C", str(checkout), "-c", "user.name=alex", "-c", "user.email=alex@example.org"]
    subprocess.run([*git, "init", "-q", "-b", "fix/checkout-retry"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    tools = folder / "bin"
    tools.mkdir()
    (tools / "claude").write_text("#!/bin/sh\n")
    (tools / "claude").chmod(0o755)
    return {
        "HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{tools}:/usr/bin:/bin", "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS), "LANG": "C.UTF-8", "PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}",
    }  # fmt: skip


def shown(command: str, env: dict[str, str]) -> str:
    """Everything that a terminal gets to see of a command."""
    pid, terminal = pty.fork()
    if pid == 0:
        arguments = [sys.executable, "-m", "sessions_cli.main", *command.split()[1:]]
        os.execve(sys.executable, arguments, env)  # noqa: S606 - no shell is wanted
    data = b""
    while True:
        try:
            block = os.read(terminal, 65536)
        except OSError:
            break
        if not block:
            break
        data += block
    os.close(terminal)
    os.waitpid(pid, 0)
    return data.decode().replace("\r\n", "\n")


def line_svg(text: str, row: int) -> str:
    """One line of terminal output as an SVG text element."""
    spans, style = [], ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", text):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if code:
            style = STYLES[code.group(1) or "0"]
        elif part:
            escaped = html.escape(part).replace(" ", "\u00a0")
            spans.append(f'<tspan style="{style}">{escaped}</tspan>' if style else escaped)
    return f'<text x="{MARGIN}" y="{MARGIN + LINE * (row + 1)}">{"".join(spans)}</text>'


def wrapped(line: str) -> list[str]:
    """The line as a terminal breaks it; coloured lines are made to fit."""
    if "\x1b" in line or len(line) <= COLUMNS:
        return [line]
    return [line[at : at + COLUMNS] for at in range(0, len(line), COLUMNS)]


def picture(text: str) -> str:
    lines = [part for line in text.rstrip("\n").split("\n") for part in wrapped(line)]
    width, height = round(COLUMNS * CELL + 2 * MARGIN), LINE * len(lines) + 2 * MARGIN + 6
    body = "\n".join(line_svg(line, row) for row, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' role="img" aria-label="The output of sessions in a terminal">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n'
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" fill="#e6edf3">\n'
        f"{body}\n</g>\n</svg>\n"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        env = stage(folder)
        shown("sessions list", env)
        text = ""
        for command in COMMANDS:
            text += f"\x1b[2m$\x1b[0m \x1b[1m{command}\x1b[0m\n{shown(command, env)}\n"
        text = text.replace(str(folder / "bin"), "/usr/local/bin").replace(str(folder / "home"), RECORDED)
    TARGET.write_text(picture(text))
    print(f"wrote {TARGET}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
