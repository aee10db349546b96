"""The background service of one user: a systemd user unit, or a launchd agent on macOS.

`job` says what is to be run. `unit` makes a systemd unit of it and `systemd` takes that to its manager. `launchd` does
both for macOS. `purge` removes the index.
"""

from __future__ import annotations

import sys

from sessiond import paths
from sessiond.service.job import Manager


def manager(env: paths.Environment, program: str = "sessiond") -> Manager:
    """The kind of service manager that this system has; whether it answers shows when it is asked for something.

    `program` is how the daemon is called in the advice for systems without a manager.
    """
    if sys.platform == "darwin":
        from sessiond.service.launchd import Launchd  # noqa: PLC0415 - one of the two is needed

        return Launchd(env, program)
    from sessiond.service.systemd import Systemd  # noqa: PLC0415

    return Systemd(env, program)
