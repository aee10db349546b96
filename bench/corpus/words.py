"""The text of made-up sessions: deterministic, believable in length, with words of known frequency to search for."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta

COMMON_WORD = "checkout"
"""In about one title of eight."""
RARE_WORD = "quixotry"
"""In one title of two thousand."""
MISSING_WORD = "zygomorph"
SHORT_WORD = "db"
NEWEST = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
"""The newest session of every corpus; the others lie before it."""


def _parts(text: str, separator: str | None = None) -> list[str]:
    return [part.strip() for part in text.split(separator)]


_VERBS = _parts("Fix, Add, Remove, Refactor, Test, Document, Speed up, Investigate, Migrate, Review, Port", ",")
_THINGS = _parts(
    "checkout retry, payment webhook, login form, db migration, search index, upload queue, invoice export,"
    " cache layer, release notes, checkout e2e test, date picker, token refresh, mail template, error page,"
    " rate limiter, audit log, feature flags, image resizing, session cookie, background worker, CSV import,"
    " price rounding, menu bar, unit tests",
    ",",
)
_PLACES = _parts("in the API, on mobile, for guests, after the upgrade, behind the proxy, in CI, on retry", ",")
_PROJECTS = _parts("shop-api web billing infra docs mobile search-service admin pipeline design")
_FILLER = _parts(
    "the function returns an empty list when nothing matches so the caller should test for that before it reads the "
    "first element and the log shows a timeout while the worker waits for a lock that another process still holds "
    "please look at handler.py and at the tests beside it then run them again with the option that prints each query "
    "we keep one connection per thread because the driver is not safe across threads and closing it late leaks memory"
)


def rng(*seed: object) -> random.Random:
    return random.Random("/".join(map(str, seed)))


def session_id(dice: random.Random) -> str:
    """A random (version 4) UUID, as Claude Code makes them."""
    return str(uuid.UUID(int=dice.getrandbits(128), version=4))


def thread_id(dice: random.Random, at: datetime) -> str:
    """A time-ordered (version 7) UUID, as Codex makes them."""
    ms = int(at.timestamp() * 1000)
    value = (ms << 80) | (0x7 << 76) | (dice.getrandbits(12) << 64) | (0b10 << 62) | dice.getrandbits(62)
    return str(uuid.UUID(int=value))


def title(dice: random.Random) -> str:
    rare = f" {RARE_WORD}" if dice.random() < 1 / 2000 else ""
    return f"{dice.choice(_VERBS)} {dice.choice(_THINGS)} {dice.choice(_PLACES)}{rare}"


def prompt(dice: random.Random) -> str:
    return f"{title(dice)}. {sentence(dice, dice.randint(4, 40))}."


def sentence(dice: random.Random, words: int) -> str:
    start = dice.randrange(len(_FILLER))
    return " ".join(_FILLER[(start + i * (1 + start % 3)) % len(_FILLER)] for i in range(words))


def branch(dice: random.Random) -> str:
    if dice.random() < 0.25:
        return "main"
    return f"{dice.choice(('fix', 'feature', 'test', 'chore'))}/{dice.choice(_THINGS).replace(' ', '-').lower()}"


def folder(dice: random.Random, projects: int) -> str:
    number = dice.randrange(projects)
    return f"/Users/alex/code/{_PROJECTS[number % len(_PROJECTS)]}-{number // len(_PROJECTS)}"


def moment(dice: random.Random, days: float = 400) -> datetime:
    """When a session ended: the newer the likelier."""
    back = timedelta(days=days * dice.random() ** 2)
    return (NEWEST - back).replace(microsecond=dice.randrange(1000) * 1000)


def stamp(at: datetime) -> str:
    """RFC 3339, UTC, milliseconds, as both apps write it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def size_bytes(dice: random.Random, median: int = 31_000, mean: int = 54_000) -> int:
    """A log-normal file size with this median and mean."""
    import math  # noqa: PLC0415

    return min(2_000_000, int(dice.lognormvariate(math.log(median), math.sqrt(2 * math.log(mean / median)))))
