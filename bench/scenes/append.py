"""One append to a transcript of two gigabytes."""

from __future__ import annotations

import json
import os
import shutil
import statistics

from bench.corpus import claude, seed_shape, words
from bench.process import Command
from bench.report import Figure, Section, number, table
from bench.scenes.first_index import output
from bench.setting import CHECKOUT, Setting

RECORD_EXTRA = 4096


def measure(setting: Setting) -> Section:
    size = int(2.07e9 * min(1.0, setting.factor))
    home = os.path.join(setting.folder, "homes", "append")
    shutil.rmtree(home, ignore_errors=True)
    session = claude.Transcript(words.rng("append"), "/Users/alex/code/shop-api-0", "main", custom_title="Long talk")
    path = seed_shape.put_large(home, session, size)
    env = setting.environment(home, setting.state("append")) | {"PYTHONPATH": CHECKOUT}
    child = Command(
        [setting.python, "-m", "bench.inside", "append", path, "40"], env, setting.clearing(setting.state("append"))
    )
    done = json.loads(output(child))
    shutil.rmtree(home)
    cpu = statistics.median(c for _, c in done["took_ms"])
    wall = statistics.median(w for w, _ in done["took_ms"])
    beyond = max(done["read_beyond"])
    section = Section(
        "One append to a large transcript",
        "python -m bench --only append",
        f"A transcript of {size / 1e9:.2f} GB gets one record of about 1.5 kB, 40 times; after each the scanner is "
        "told of the path, as by an event: stat, read, merge, commit to the index.",
    )
    section.tables.append(
        table(
            ("", "median", "largest"),
            [
                ("CPU ms", number(cpu), number(max(c for _, c in done["took_ms"]))),
                ("wall ms", number(wall), number(max(w for w, _ in done["took_ms"]))),
                ("bytes read beyond those appended", number(statistics.median(done["read_beyond"])), number(beyond)),
            ],
        )
    )
    section.figures += [
        Figure("one append to a 2 GB transcript, CPU", cpu, 1.0, " ms"),
        Figure("the same, bytes read beyond those appended", beyond, RECORD_EXTRA, " B"),
    ]
    return section
