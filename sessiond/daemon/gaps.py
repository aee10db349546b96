"""How fast the middle of large files is looked through. Pure: it is given the time, monotonic, in seconds."""

BYTES_S = 32 << 20
BYTES_DAY = 4 << 30
DAY_S = 86_400.0


class GapBudget:
    """So many bytes a second, and so many a day from the first of them on."""

    def __init__(self) -> None:
        self._since = -DAY_S
        self._used = 0

    def wait_until(self, now: float) -> float:
        """When the next file may be looked through: `now`, or the end of a day whose budget is used up."""
        if now - self._since >= DAY_S:
            self._since, self._used = now, 0
        return now if self._used < BYTES_DAY else self._since + DAY_S

    def spend(self, used_bytes: int, now: float) -> float:
        """So many bytes were looked at; when the next ones may be."""
        self._used += used_bytes
        return now + used_bytes / BYTES_S
