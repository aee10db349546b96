"""Facts as the index keeps them: JSON, compressed with a dictionary of the words that recur in all of them.

They are most of what is stored of a session, and repeat the same keys: as text they made up a third of the index.
"""

import json
import zlib
from typing import Any

from sessiond.model import Facts

_LEVEL, _WINDOW_BITS, _MEMORY = 6, -12, 4
_RECURRING = (
    b'{"agent_name":"","branch":"feature/fix/main","command":"created_ms":17"archived":1,"talk":1,"worktree":["/.claude/w'
    b'orktrees/"custom_title":"{"path":"/.codex/sessions/2026/archived_sessions/rollout-2026-T-019.jsonl","created_ms":17'
    b',"cwd":"/Users/home/code/src/projects","branch":"main","provider":"openai","version":"0.1","origin":"codex-tui","sou'
    b'rce":"cli","prompt":"","title":"","titled":1,"name":"","paginated":1,"model":"gpt-5.4-codex","effort":"medium","appr'
    b'oval":"on-request","sandbox":"{\\"type\\":\\"workspace-write\\",\\"network_access\\":false}","updated_ms":17{"ai_tit'
    b'le":"","branch":"main","created_ms":17,"custom_title":"","cwd":"/Users/home/code","effort":"high","entrypoint":"cli"'
    b',"first_cwd":"/Users/home/code","first_prompt":"","model":"claude-opus-4-7","opening":{},"permission_mode":"default"'
    b',"updated_ms":17,"version":"2.1.2"}'
)
"""Part of the format: a change of it needs another SCHEMA_VERSION."""
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def packed(facts: Facts) -> bytes:
    """The same facts always give the same bytes, when their keys are in the same order."""
    squeezer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY, zlib.Z_DEFAULT_STRATEGY, _RECURRING)
    return squeezer.compress(_encoder.encode(facts).encode()) + squeezer.flush()


def unpacked(data: object) -> dict[str, Any]:
    """What was packed, from a column of a row."""
    assert isinstance(data, bytes)
    found: dict[str, Any] = json.loads(zlib.decompressobj(_WINDOW_BITS, _RECURRING).decompress(data))
    return found
