"""What the service manager is told: READY, STATUS, WATCHDOG and STOPPING, by the protocol of sd_notify(3)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

_PING_S = 1.0
"""Pings come at most this often, or as often as the watchdog asks for."""
_SEND_S = 1.0
"""So long the manager may take to receive what is said once and never again."""
_START_USEC = 60_000_000


class Notifier:
    """Sends datagrams to the socket in `NOTIFY_SOCKET`; with an empty address every method does nothing.

    A manager that cannot be reached is no reason to stop work: failures to send are dropped, and the manager draws
    its own conclusions from the silence.
    """

    def __init__(
        self,
        socket_address: str | None,
        watchdog_usec: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = _kernel_address(socket_address or "")
        self.silence_s = _silence_s(watchdog_usec or "")
        """The longest that a loop with nothing to do may wait before it pings again; the manager allows twice that."""
        self._clock = clock
        self._pinged_s: float | None = None
        self._status = ""
        self._is_ready = False

    def ready(self) -> None:
        """Watches stand and the index opens: units and people that waited for us may go on."""
        self._is_ready = True
        self._send("READY=1", _SEND_S)

    def status(self, text: str) -> None:
        """One line for `systemctl status`; the same line again is not sent."""
        line = " ".join(text.split())
        if line != self._status and self._send(f"STATUS={line}"):
            self._status = line

    def ping(self) -> None:
        """The working loop is alive. The loop itself calls it, as often as it likes; few are sent.

        Before `ready` there is no watchdog, but a time limit for starting: then it asks for more.
        """
        now_s = self._clock()
        if self._pinged_s is None or now_s - self._pinged_s >= min(_PING_S, self.silence_s):
            self._pinged_s = now_s
            self._send("WATCHDOG=1" if self._is_ready else f"EXTEND_TIMEOUT_USEC={_START_USEC}")

    def stopping(self) -> None:
        self._send("STOPPING=1", _SEND_S)

    def _send(self, message: str, wait_s: float = 0.0) -> bool:
        """Whether it was received: a manager that receives nothing now must not slow the work down."""
        if not self._address:
            return False
        import socket  # noqa: PLC0415 - nobody pays for it in the foreground

        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.settimeout(wait_s)
            channel.connect(self._address)  # an unconnected socket is always writable: waiting would spin
            channel.send(message.encode("utf-8", "replace"))
            return True
        return False


def _kernel_address(address: str) -> bytes:
    """The address as the kernel wants it: `@name` is in the abstract namespace; other kinds than these are not ours."""
    if address.startswith("@"):
        return b"\0" + os.fsencode(address[1:])
    return os.fsencode(address) if address.startswith("/") else b""


def _silence_s(watchdog_usec: str) -> float:
    """Half of the time after which the manager takes us for hung; without a watchdog there is no end to it."""
    if not (watchdog_usec.isascii() and watchdog_usec.isdecimal()):
        return float("inf")
    return int(watchdog_usec) / 2_000_000 or float("inf")
