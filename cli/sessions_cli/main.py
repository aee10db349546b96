"""The entry point: the fast path, else the click group; errors as one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from sessiond.errors import INTERRUPTED, SessiondError
from sessions_cli import quick
from sessions_cli.options import COMPLETE_VARIABLE
from sessions_cli.output import say


def run(argv: Sequence[str]) -> int:
    """Carry out a command line; the exit code comes back. Results may still be in the buffer of stdout."""
    try:
        code = None if COMPLETE_VARIABLE in os.environ else quick.run(argv)
        if code is None:
            from sessions_cli.lazy import run_click  # noqa: PLC0415 - click is slower than most answers

            code = run_click(argv)
    except SessiondError as error:
        for line in str(error).split("\n"):
            say(line)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def main() -> None:
    """The console script. Leaves without the interpreter's clean-up, which takes longer than some answers.

    A pipe that is closed early changes nothing: the exit code is what it would have been, 0 if that was not known yet.
    """
    code = 0
    try:
        code = run(sys.argv[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as error:
        say(f"cannot write the answer: {error.strerror}")
        code = 1
    os._exit(code)


if __name__ == "__main__":
    main()
