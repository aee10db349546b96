"""The method the project started from, written plainly by its description, as the reference of every figure.

Claude Code: the first 80 lines (capped at 256 KiB each) give folder, first branch and a title of the first prompt; the
last 512 KiB, every line of them parsed, give newest title and branch. Codex: 300 newest rows of the state database,
opened immutable, else the first line of each rollout. The index is one JSON file; a search tests every row for a text.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEAD_LINES, LINE_BYTES, TAIL_BYTES = 80, 256 * 1024, 512 * 1024
Row = dict[str, Any]


def head(path: Path, count: int = HEAD_LINES) -> list[bytes]:
    lines: list[bytes] = []
    with path.open("rb") as file:
        for _ in range(count):
            piece = file.readline(LINE_BYTES + 1)
            if not piece:
                break
            if len(piece) <= LINE_BYTES:
                lines.append(piece)
                continue
            while piece and not piece.endswith(b"\n"):
                piece = file.readline(1 << 20)
    return lines


def tail(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().split(b"\n")
    return lines[1:] if size > TAIL_BYTES else lines


def records(lines: list[bytes]) -> Iterator[Row]:
    for text in lines:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def first_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        for block in content:
            if isinstance(block, dict) and block.get("type") == "text":
                return str(block.get("text") or "")
    return ""


def claude_rows(home: Path) -> Iterator[Row]:
    for folder in sorted((home / ".claude" / "projects").glob("*/")):
        for path in folder.glob("*.jsonl"):
            if not path.stem.startswith("agent-"):
                yield claude_row(path)


def claude_row(path: Path) -> Row:
    status = path.stat()
    cwd = branch = title = None
    for record in records(head(path)):
        cwd = cwd or record.get("cwd")
        branch = branch or record.get("gitBranch") or None
        if title is None and record.get("type") == "user" and not record.get("isSidechain"):
            text = first_text((record.get("message") or {}).get("content")).strip()
            if text and not text.startswith("<"):
                title = text[:80]
        if cwd and branch and title:
            break
    for record in records(tail(path)):
        for key in ("customTitle", "aiTitle"):
            if record.get(key):
                title = record[key][:100]
        branch = record.get("gitBranch") or branch
    return {"app": "claude-code", "id": path.stem, "cwd": cwd, "branch": branch, "title": title,
            "mtime": int(status.st_mtime * 1000), "bytes": status.st_size}  # fmt: skip


def codex_rows(home: Path) -> Iterator[Row]:
    databases = sorted((home / ".codex").glob("state_*.sqlite"), key=lambda p: int(p.stem.split("_")[1]))
    if databases:
        connection = sqlite3.connect(f"file:{databases[-1]}?mode=ro&immutable=1", uri=True)
        query = (
            "SELECT id, cwd, git_branch, title, coalesce(updated_at_ms, updated_at * 1000), source"
            " FROM threads ORDER BY 5 DESC LIMIT 300"
        )
        for id_, cwd, branch, title, mtime, source in connection.execute(query):
            if not (source or "").startswith("{"):
                yield {"app": "codex", "id": id_, "cwd": cwd, "branch": branch, "title": (title or "")[:100] or None,
                       "mtime": mtime or 0, "bytes": None}  # fmt: skip
        connection.close()
        return
    for path in (home / ".codex" / "sessions").glob("*/*/*/rollout-*.jsonl"):
        record = next(records(head(path, 1)), {})
        if record.get("type") == "session_meta":
            meta = record.get("payload", {})
            status = path.stat()
            yield {"app": "codex", "id": meta.get("id"), "cwd": meta.get("cwd"), "title": None,
                   "branch": (meta.get("git") or {}).get("branch"), "mtime": int(status.st_mtime * 1000),
                   "bytes": status.st_size}  # fmt: skip


def build(home: Path, index: Path) -> int:
    rows = [*claude_rows(home), *codex_rows(home)]
    rows.sort(key=lambda row: row["mtime"], reverse=True)
    index.write_text(json.dumps(rows))
    return len(rows)


def find(index: Path, text: str) -> list[Row]:
    text = text.strip().lower()
    rows: list[Row] = json.loads(index.read_text())
    keys = ("title", "cwd", "branch", "app", "id")
    return [row for row in rows if not text or any(text in str(row[key]).lower() for key in keys if row[key])]


def main() -> None:
    verb, home, index = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if verb == "build":
        began = time.perf_counter()
        count = build(home, index)
        print(f"{count} sessions {(time.perf_counter() - began) * 1000:.3f} ms")
    else:
        for row in find(index, sys.argv[4])[:20]:
            print(row["app"], row["id"][:8], row["branch"] or "-", row["title"] or "-", sep="\t")


if __name__ == "__main__":
    main()
