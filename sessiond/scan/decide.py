"""What a scan has to do, from what is on disk and what the index remembers. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sessiond.model import Fingerprint
from sessiond.store.writer import Known

RACY_MS = 3000
"""A file changed less than this before it was read is looked at again: coarse clocks may hide a second change."""


class Decision(NamedTuple):
    read: list[tuple[str, Fingerprint]]
    """Newest first."""
    absent: list[str]


def decide(
    found: Mapping[str, Fingerprint],
    known: Mapping[str, Known],
    unreadable: Iterable[str],
    is_ours: Callable[[str], bool],
) -> Decision:
    """What has to be read, and which known files are no longer there.

    A file below an unreadable folder is never absent, nor is one that no present home claims.
    """
    read = []
    for path, fingerprint in found.items():
        old = known.get(path)
        if old is None or old[5] or old[1:5] != fingerprint[1:]:  # `again` and `is_at`, in the quickest way
            read.append((path, fingerprint))
    read.sort(key=lambda item: item[1].mtime_ns, reverse=True)
    lost = known.keys() - found.keys()
    if not lost:
        return Decision(read, [])
    hidden = tuple(folder.rstrip("/") + "/" for folder in unreadable)
    absent = [path for path in lost if not (path + "/").startswith(hidden) and is_ours(path)]
    return Decision(read, sorted(absent))


def is_racy(fingerprint: Fingerprint, now_ms: int) -> bool:
    """Whether a second change could hide behind these times: judged by ctime, the one that nobody can set.

    A ctime in the future comes from a clock set back since; any later change will show in it.
    """
    return abs(now_ms - fingerprint.ctime_ns // 1_000_000) < RACY_MS
