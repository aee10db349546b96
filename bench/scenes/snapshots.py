"""Private copies of a database under a writer that does everything to it, and two ways of reading that must fail."""

from __future__ import annotations

from bench.report import Figure, Section, table
from bench.setting import Setting
from tests.kit.snapshot_hammer import CONTROLS, hammer

READS, QUICK_READS, LIMIT_S = 10_000, 1_500, 900.0


def measure(setting: Setting) -> Section:
    reads = READS if setting.long else QUICK_READS
    verdicts = hammer("wal", reads, seed=1, limit_s=LIMIT_S)
    kinds = ("good", "torn", "stale", "none")
    section = Section(
        "Snapshots of a live database",
        "python -m bench --only snapshots",
        "Torn: several generations in one read, or a damaged file. Stale: older than what was committed before. The "
        "last two ways are what other programs do, and show that the test can fail.",
    )
    section.tables.append(table(("way of reading", *kinds), [(n, *(c[k] for k in kinds)) for n, c in verdicts.items()]))
    ours = [counts for name, counts in verdicts.items() if name not in CONTROLS]
    section.figures += [
        Figure(f"snapshots under a busy writer: torn, of {reads:,} reads", sum(c["torn"] for c in ours), 0),
        Figure("the same, stale", sum(c["stale"] for c in ours), 0),
    ]
    return section
