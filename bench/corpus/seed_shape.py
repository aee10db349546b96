"""Forty enormous transcripts and twelve threads: sizes as once measured on a real machine, times a factor."""

from __future__ import annotations

import math
import os

from bench.corpus import claude, codex, words
from bench.corpus.blocks import line

TRANSCRIPTS, THREADS = 40, 12
MEDIAN, P90, LARGEST = 168e6, 1.94e9, 2.07e9


def sizes(factor: float) -> list[int]:
    """Log-normal through median and 90th percentile, capped at the largest: 19 GB in all at factor 1."""
    low, high = math.log(MEDIAN), math.log(P90)
    fractions = [(n + 0.5) / TRANSCRIPTS for n in range(TRANSCRIPTS)]
    sigma = (high - low) / 1.2816
    bell = [_quantile(f) for f in fractions]
    return [int(factor * min(LARGEST, math.exp(low + sigma * q))) for q in bell]


def _quantile(fraction: float) -> float:
    from statistics import NormalDist  # noqa: PLC0415

    return NormalDist().inv_cdf(fraction)


def make(home: str, factor: float) -> None:
    for number, size in enumerate(sizes(factor)):
        dice = words.rng("seed", number)
        session = claude.Transcript(
            dice,
            words.folder(dice, 12),
            words.branch(dice),
            ended=words.moment(dice, 60),
            custom_title=words.title(dice),
        )
        put_large(home, session, size)
    home = os.path.join(home, ".codex")
    connection = codex.create_database(home)
    for number in range(THREADS):
        dice = words.rng("seed-codex", number)
        thread = codex.Thread(
            dice, words.folder(dice, 12), words.branch(dice), ended=words.moment(dice, 60),
            size=int(2_800_000 * factor), archived=number >= THREADS - 2,
        )  # fmt: skip
        claude.write(thread.path(home), thread.data(), thread.ended)
        codex.add_row(connection, home, thread)
    connection.commit()
    connection.close()


def put_large(home: str, session: claude.Transcript, size: int) -> str:
    """A transcript of about `size` bytes: its ends, and a megabyte of turns again and again between."""
    ends = session.data()
    title = line({"type": "custom-title", "customTitle": session.custom_title, "sessionId": session.id})
    turns = claude.TURNS[claude.NEW]
    middle = turns.fill(session.dice, 1 << 20, session.facts, session.ended.strftime("%Y-%m-%dT%H:%M")) + title
    cut = ends.index(b"\n", len(ends) // 2) + 1
    path = os.path.join(claude.project_folder(home, session.cwd), session.id + ".jsonl")
    claude.write(path, ends[:cut], session.ended)
    with open(path, "ab") as file:
        file.writelines(middle for _ in range(max(0, size - len(ends)) // len(middle)))
        file.write(ends[cut:])
    ns = int(session.ended.timestamp() * 1000) * 1_000_000
    os.utime(path, ns=(ns, ns))
    return path
