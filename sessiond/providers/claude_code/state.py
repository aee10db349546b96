"""Where reading a transcript stopped, as the index keeps it."""

import json
import struct
from typing import Any, NamedTuple

_USUAL = struct.Struct("<QQII")
"""End, size and seal: all there is of a file that was read without a gap. No JSON of a state is as short."""


class State(NamedTuple):
    end: int
    """Where the next line to be read begins."""
    size: int
    seal: list[int]
    head_end: int | None = None
    """Where the contiguous beginning ends, when there is or was a gap behind it."""
    gap: tuple[int, int] | None = None
    """The part nobody has looked at."""
    places: dict[str, int] | None = None
    """Last-fact -> offset, kept when there is or was a gap."""
    committed: dict[str, Any] | None = None
    """The facts without those of a last line that has no newline yet, when that makes a difference."""

    def encode(self) -> bytes:
        if self[3:] == (None,) * 4:
            return _USUAL.pack(self.end, self.size, *self.seal)
        pairs = {key: value for key, value in zip(self._fields, self, strict=True) if value is not None}
        return json.dumps(pairs).encode()

    @classmethod
    def decode(cls, data: bytes) -> "State | None":
        if len(data) == _USUAL.size:
            end, size, *seal = _USUAL.unpack(data)
            return cls(end, size, seal)
        try:
            state = cls(**json.loads(data))
        except (ValueError, TypeError):
            return None
        return state._replace(gap=(state.gap[0], state.gap[1])) if state.gap else state
