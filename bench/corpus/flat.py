"""One project folder with more files than any tool was made for."""

from __future__ import annotations

from bench.corpus import claude, words

FILES = 107_000


def make(home: str, count: int = FILES) -> None:
    """`count` tiny transcripts in one folder, all but eleven of them spawned by a program."""
    sample = claude.Transcript(
        words.rng("flat"), "/Users/alex/code/shop-api-0", "main", entrypoint="sdk-cli", size=1, id="@ID@"
    )
    lines = sample.data().splitlines(keepends=True)
    template = b"".join(lines[:4] + lines[-2:])
    dice = words.rng("flat-ids")
    folder = claude.project_folder(home, sample.cwd)
    for number in range(count):
        name = words.session_id(dice)
        data = template.replace(b"@ID@", name.encode())
        if number < 11:
            data = data.replace(b'"sdk-cli"', b'"cli"')
        claude.write(f"{folder}/{name}.jsonl", data, words.moment(dice))
