"""Reading the files of Claude Code, each kind by its own rules. Pure over an open file."""

from __future__ import annotations

import os

from sessiond.jsonl import BinaryFile
from sessiond.model import Previous, Reading, Source
from sessiond.providers.claude_code import layout, name_file, transcript


def observe(source: Source, file: BinaryFile, size: int, previous: Previous | None) -> Reading:
    """What a transcript or the name file beside it says."""
    session_id = layout.session_id(source)
    if source.kind == layout.TITLE:
        return name_file.observe(file, size, session_id)
    return transcript.observe(file, size, session_id, _folder_name(source), previous)


def fill(source: Source, file: BinaryFile, previous: Previous, budget_bytes: int) -> Reading:
    """The same of a transcript with its gap looked through."""
    return transcript.fill(file, layout.session_id(source), _folder_name(source), previous, budget_bytes)


def _folder_name(source: Source) -> str:
    """The name of the project folder, which a directory that a record tells is tested against."""
    return os.path.basename(layout.project_folder(source))
