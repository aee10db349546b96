"""What only root, namespaces or a tool can do; tests that need it skip with the reason where it is missing."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

import pytest


def _works(*command):
    try:
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0
    except OSError:
        return False


@functools.cache
def _has_user_namespace():
    return _works("unshare", "-Ur", "true")


@functools.cache
def _has_mounts():
    return _works("unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt")


@functools.cache
def _has_time_namespace():
    return _works("unshare", "-T", "--boottime", "100", "true")


@functools.cache
def _obeys_modes():
    return os.geteuid() != 0 or _works(*WITHOUT_CAPABILITIES, "true")


WITHOUT_CAPABILITIES = (
    "setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search",
)  # fmt: skip
"""Makes root obey permission bits."""


def obedient():
    """The prefix under which a process obeys permission bits; skips where there is none."""
    if os.geteuid() != 0:
        return ()
    if not _obeys_modes():
        pytest.skip("root cannot be made to obey permission bits: setpriv does not work here")
    return WITHOUT_CAPABILITIES


def watch_limit(watches=None, instances=None):
    """The prefix under which a process has so few inotify watches or instances; a new user namespace counts anew."""
    if not _has_user_namespace():
        pytest.skip("user namespaces cannot be made here")
    settings = []
    if watches is not None:
        settings.append(f"echo {watches} > /proc/sys/user/max_inotify_watches")
    if instances is not None:
        settings.append(f"echo {instances} > /proc/sys/user/max_inotify_instances")
    return ("unshare", "-Ur", "sh", "-c", f'{" && ".join(settings)} && exec "$@"', "sh")


def need_mounts():
    if os.geteuid() != 0 or not _has_mounts():
        pytest.skip("mounting needs root")


def need_strace():
    if shutil.which("strace") is None or not _works("strace", "-o", "/dev/null", "true"):
        pytest.skip("strace does not work here")


def time_namespace(*arguments):
    if not _has_time_namespace():
        pytest.skip("time namespaces cannot be made here")
    return ("unshare", "-T", *arguments)


class Mount:
    """A mount that is there in the block, and is taken away at its end whatever happened."""

    def __init__(self, point, *arguments):
        need_mounts()
        self.point = str(point)
        self._arguments = arguments

    def __enter__(self):
        os.makedirs(self.point, exist_ok=True)
        self.mount()
        return self

    def mount(self):
        subprocess.run(["mount", *self._arguments, self.point], check=True, capture_output=True)

    def unmount(self):
        subprocess.run(["umount", "-l", self.point], check=True, capture_output=True)

    def __exit__(self, *_error):
        subprocess.run(["umount", "-l", self.point], check=False, capture_output=True)
