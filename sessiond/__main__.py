"""`sessiond`: the background indexer, in the foreground; `--once` brings the index up to date and ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from sessiond import __version__, config, locks, paths
from sessiond.errors import INTERRUPTED, SessiondError

_PLAIN = {(): (False, False), ("--once",): (True, False), ("--once", "--gaps"): (True, True)}
"""Command lines -> (once, gaps) that need no parser: it takes a third of the start-up."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = tuple(sys.argv[1:] if argv is None else argv)
    is_once, gaps = _PLAIN.get(arguments) or _parsed(arguments)
    try:
        return once(os.environ, gaps=gaps) if is_once else serve(os.environ)
    except SessiondError as error:
        print(f"sessiond: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except KeyboardInterrupt:  # what was committed stays
        return INTERRUPTED


def _parsed(arguments: Sequence[str]) -> tuple[bool, bool]:
    """(once, gaps); help, version and errors end the program here."""
    import argparse  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog="sessiond", description="Keeps an index of your sessions with coding agents.")
    parser.add_argument("--once", action="store_true", help="bring the index up to date and exit")
    parser.add_argument(
        "--gaps", action="store_true", help="with --once: also look for names in the middle of large files"
    )
    parser.add_argument("--version", action="version", version=f"sessiond {__version__}")
    options = parser.parse_args(arguments)
    if options.gaps and not options.once:
        parser.error("--gaps goes with --once; the running daemon looks there by itself")
    return options.once, options.gaps


def once(env: Mapping[str, str], *, gaps: bool) -> int:
    from sessiond.scan import refresh  # noqa: PLC0415 - only what is asked for is imported

    folder = paths.state_dir(env)
    settings = config.load(env)
    if locks.is_held(paths.daemon_lock(folder)):
        pid = locks.owner(paths.daemon_lock(folder))
        print(f"sessiond: a daemon is running (pid {pid}) and keeps the index up to date", file=sys.stderr)  # noqa: T201
        return 0
    refresh(folder, config.homes(settings, env), settings, wait_s=None, gaps=gaps)
    return 0


def serve(env: Mapping[str, str]) -> int:
    from sessiond.daemon import run  # noqa: PLC0415

    return run(env)


if __name__ == "__main__":
    sys.exit(main())
