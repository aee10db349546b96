"""Search alone: the library's own time for every kind of word, without start-up."""

from __future__ import annotations

import json
import os

from bench.process import Command, run
from bench.report import Figure, Section, number, table
from bench.scenes.first_index import output
from bench.setting import CHECKOUT, Setting

WORD_MS, WORST_MS = 10, 80
LABELS = {"10000": "10,000 rows", "hidden": "100,000 rows, 5 % of them listed by default"}


def measure(setting: Setting) -> Section:
    section = Section(
        "Search alone",
        "python -m bench --only search",
        "The 20 newest hits and, for the default list, the count of hidden ones, by the store's reader on an open "
        "index; medians and largest of 25 calls. No word shorter than three characters can use the trigram index.",
    )
    worst = word = words = 0.0
    for name, label in LABELS.items():
        if not os.path.exists(os.path.join(setting.state(name), "index.db")):
            run(setting.once(name, fresh=True))
        env = setting.environment(setting.home(name), setting.state(name)) | {"PYTHONPATH": CHECKOUT}
        done = json.loads(output(Command([setting.python, "-m", "bench.inside", "search"], env)))
        rows = [
            (d["text"] or "(none)", d["scope"], d["hits"], number(d["median_ms"]), number(d["largest_ms"]))
            for d in done
        ]
        section.tables.append(f"**{label}**\n\n" + table(("words", "scope", "hits", "median ms", "largest ms"), rows))
        if name == "hidden":
            word = max(d["median_ms"] for d in done if len(d["text"]) >= 3 and " " not in d["text"])
            words = max(d["median_ms"] for d in done if " " in d["text"])
            worst = max(d["median_ms"] for d in done)
    section.figures += [
        Figure("search alone, 100,000 rows, any word of 3 or more characters", word, WORD_MS, " ms"),
        Figure("the same, three and four words", words, WORST_MS, " ms"),
        Figure("search alone, 100,000 rows, worst case", worst, WORST_MS, " ms"),
    ]
    return section
