"""A real `systemd --user` manager of an ordinary user, on a machine that was not booted with systemd.

Namespaces of its own (mounts, processes, cgroups) with an empty /home and /run make a user session that ends without a
trace. As root, sandboxing would work in ways in which it does not for users, so everything inside runs as `UID`.

Three stages of this one file: `UserSession` starts it as root, which claims cgroups and unshares; `--inside` mounts and
gives root up; `--serve` starts the manager and runs what it is asked to, JSON lines in and out.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

UID = 1000
HOME = "/home/u"
RUNTIME = f"/run/user/{UID}"
NEEDED = ("systemctl", "nsenter", "unshare", "setpriv", "mount", "umount")
SYSTEMD = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")


def why_not() -> str | None:
    """Why no user session can be had here; None when it can be tried."""
    if sys.platform != "linux" or os.geteuid():
        return "needs root on Linux"
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or not any(map(os.path.exists, SYSTEMD)):
        return f"not installed: {', '.join(missing) or 'systemd'}"
    probe = subprocess.run(
        ["unshare", "--mount", "--pid", "--cgroup", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/run"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if probe.returncode:
        return f"no namespaces here: {probe.stderr.strip()}"
    claimed = _claim_cgroups()
    for folder in claimed:
        _remove_cgroup(folder)
    return None if claimed else "no cgroup hierarchy can be written here"


class Done:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out}{self.err}"


class UserSession:
    """Commands are run in the session as its user; `close` ends everything in it."""

    def __init__(self, *, namespaces: bool = True) -> None:
        self._cgroups = _claim_cgroups()
        self._process = subprocess.Popen(
            ["sh", "-c", 'for f in $CGROUPS; do echo $$ >"$f/cgroup.procs"; done; exec "$@"', "sh",
             "unshare", "--mount", "--pid", "--cgroup", "--fork", "--mount-proc", "--kill-child",
             sys.executable, "-I", __file__, "--inside", sys.base_prefix, *([] if namespaces else ["--no-namespaces"])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"PATH": os.environ["PATH"], "CGROUPS": " ".join(self._cgroups)},
        )  # fmt: skip
        greeting = self._answer()
        if "failed" in greeting:
            self.close()
            raise RuntimeError(f"the user manager did not come up:\n{greeting['failed']}")

    def run(self, *argv: str, text: str = "", env: dict[str, str] | None = None, timeout_s: float = 30) -> Done:
        request = {"argv": argv, "input": text, "env": env or {}, "timeout_s": timeout_s}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Done(**self._answer())

    def _answer(self) -> dict:
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"failed": "it ended"}

    def write(self, path: str, text: str, *, append: bool = False) -> None:
        redirection = ">>" if append else ">"
        script = f'mkdir -p "$(dirname "$1")" && cat {redirection}"$1"'
        done = self.run("sh", "-c", script, "sh", path, text=text)
        assert done.code == 0, done

    def mount(self, folder: str) -> None:
        """Mount an empty file system of the user's there, as only root can."""
        ours = self._process.pid
        with open(f"/proc/{ours}/task/{ours}/children") as children:
            inner = children.read().split()[0]
        options = f"uid={UID},gid={UID}"
        command = ["nsenter", "--mount", "--target", inner, "mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
        subprocess.run(command, check=True, capture_output=True)

    def until(self, what: str, holds, within_s: float):
        """The first true value of `holds()`; fails, naming `what`, when there is none in time."""
        deadline = time.monotonic() + within_s
        while not (value := holds()):
            assert time.monotonic() < deadline, f"waited {within_s} s for: {what}"
            time.sleep(0.05)
        return value

    def close(self) -> None:
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        for folder in self._cgroups:
            _remove_cgroup(folder)


def _mounted_cgroups() -> list[tuple[str, str, str]]:
    """(folder, type, options) of every cgroup hierarchy that is mounted here."""
    with open("/proc/self/mounts") as file:
        fields = [line.split() for line in file]
    return [(f[1], f[2], f[3]) for f in fields if f[2] in ("cgroup", "cgroup2")]


def _claim_cgroups() -> list[str]:
    """A group of our own in every hierarchy: the root of the session's cgroup namespace, owned by its user."""
    claimed = []
    for mounted, _, _ in _mounted_cgroups():
        folder = os.path.join(mounted, f"sessiond-test-{os.getpid()}-{time.monotonic_ns()}")
        try:
            os.mkdir(folder)
        except OSError:
            continue
        for name in ("cpuset.cpus", "cpuset.mems"):
            if os.path.exists(os.path.join(folder, name)):
                with open(os.path.join(mounted, name)) as source, open(os.path.join(folder, name), "w") as target:
                    target.write(source.read())
        for path in (folder, *(os.path.join(folder, name) for name in os.listdir(folder))):
            os.chown(path, UID, UID)
        claimed.append(folder)
    return claimed


def _remove_cgroup(folder: str) -> None:
    for _ in range(100):
        for path, _, _ in os.walk(folder, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(path)
        if not os.path.exists(folder):
            return
        time.sleep(0.05)


def _mount(*arguments: str, check: bool = True) -> None:
    subprocess.run(["mount", *arguments], check=check, capture_output=True)


def inside(reveal: str, *, namespaces: bool) -> None:
    """Lay the session's file system out, then become its user. Process 1 of the namespaces, still root."""
    for mounted, kind, options in _mounted_cgroups():
        subprocess.run(["umount", "--lazy", mounted], check=False, capture_output=True)
        if kind == "cgroup2":
            _mount("-t", "cgroup2", "cgroup2", mounted, check=False)
        else:
            _mount("-t", "cgroup", "-o", _hierarchy(options), "cgroup", mounted, check=False)
    for folder in ("/run", "/home"):
        _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    _reveal(reveal)
    _mount("--make-rshared", "/")  # as on a booted system; `unshare` has cut the ties to the outside
    for folder in (HOME, RUNTIME):
        os.makedirs(folder)
        os.chown(folder, UID, UID)
        os.chmod(folder, 0o700)
    for folder in ("/run/systemd/system", "/run/systemd/unit-root", "/run/systemd/inaccessible/dir"):
        os.makedirs(folder)  # systemctl takes the first for a machine with systemd; the others are for sandboxes
    with open("/run/systemd/inaccessible/reg", "w"):
        pass
    if not namespaces:
        _forbid_user_namespaces()
    user = str(UID)
    env = {"HOME": HOME, "USER": "u", "LOGNAME": "u", "XDG_RUNTIME_DIR": RUNTIME, "LANG": "C.UTF-8",
           "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}  # fmt: skip
    os.chdir(HOME)
    os.execvpe(
        "setpriv",
        ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all",
         sys.executable, "-I", __file__, "--serve"],
        env,
    )  # fmt: skip


def _hierarchy(options: str) -> str:
    """What names a version 1 hierarchy among its mount options."""
    general = {"rw", "ro", "relatime", "nosuid", "nodev", "noexec", "xattr", "clone_children"}
    own = [option for option in options.split(",") if option not in general and not option.startswith("release_agent=")]
    return ",".join(["none", *own] if own and own[0].startswith("name=") else own)


def _reveal(path: str) -> None:
    """Make `path` reachable for everybody where a private folder above it stands in the way: an interpreter's home."""
    ancestor = ""
    for part in path.strip("/").split("/")[:-1]:
        ancestor = f"{ancestor}/{part}"
        if not os.stat(ancestor).st_mode & 0o001:
            os.makedirs("/run/revealed")
            _mount("--bind", path, "/run/revealed")
            _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", ancestor)
            os.makedirs(path)
            _mount("--move", "/run/revealed", path)
            return


def _forbid_user_namespaces() -> None:
    """A user namespace like the present one in all but this: no further ones can be made in it."""
    library = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    begin, end = os.pipe()
    target = os.getpid()
    child = os.fork()
    if child == 0:
        os.read(begin, 1)
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{target}/{name}", "w") as file:
                file.write("0 0 65536")
        os._exit(0)
    new_user_namespace = 0x10000000
    if library.unshare(new_user_namespace):
        raise OSError(ctypes.get_errno(), "unshare")
    os.write(end, b"x")
    os.waitpid(child, 0)
    os.setgid(0)
    os.setuid(0)
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")


def serve() -> None:
    """Start the manager, say when it is there, then run one command after the other. Ends when stdin does."""
    systemd = next(path for path in SYSTEMD if os.path.exists(path))
    with open(f"{RUNTIME}/manager.log", "w") as log:
        subprocess.Popen(
            [systemd, "--user", "--log-target=console"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    deadline = time.monotonic() + 20
    while True:
        state = subprocess.run(
            ["systemctl", "--user", "is-system-running"], capture_output=True, text=True, check=False
        ).stdout.strip()
        if state in ("running", "degraded"):
            break
        if time.monotonic() > deadline:
            with open(f"{RUNTIME}/manager.log") as log:
                print(json.dumps({"failed": f"{state}\n{log.read()[-2000:]}"}), flush=True)
            return
        time.sleep(0.05)
    print(json.dumps({"state": state}), flush=True)
    for line in sys.stdin:
        print(json.dumps(_run(**json.loads(line))), flush=True)


def _run(argv: list[str], input: str, env: dict[str, str], timeout_s: float) -> dict:  # noqa: A002 - the wire's name
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # Files, not pipes: what a command leaves running in the background must not keep us waiting.
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=out, stderr=err, env=os.environ | env, start_new_session=True
        )
        try:
            process.communicate(input.encode(), timeout=timeout_s)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = -1
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return {"code": code, "out": texts[0], "err": texts[1]}


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(sys.argv[2], namespaces="--no-namespaces" not in sys.argv)
    else:
        serve()
