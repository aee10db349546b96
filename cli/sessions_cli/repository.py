"""The present Git repository with all its worktrees; git is asked about the present folder only."""

from __future__ import annotations

import os
import subprocess

from sessiond.errors import RefusedError
from sessions_cli.moment import find_program

TIMEOUT_S = 5


def folders_and_checkouts() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(folders of all worktrees, main checkouts) of the repository around the present folder.

    Deleted worktrees are found by the second: the index knows the main checkout of their sessions. Raises RefusedError
    when the present folder is in no repository.
    """
    listing = _git("worktree", "list", "--porcelain", "-z")
    trees = [field[len("worktree ") :] for field in listing.split("\0") if field.startswith("worktree ")]
    if not trees:
        raise RefusedError("git names no worktree of this repository")
    found = dict.fromkeys(trees + [_logical(tree) for tree in trees])
    return tuple(found), tuple(dict.fromkeys([trees[0], _logical(trees[0])]))


def _logical(tree: str) -> str:
    """The tree as the shell spells it, when the present folder was entered through a symbolic link."""
    present, logical = os.getcwd(), os.environ.get("PWD", "")
    if not logical.startswith("/") or logical == present or os.path.realpath(logical) != present:
        return tree
    below = os.path.relpath(present, tree)
    end = "" if below == "." else "/" + below
    if below.startswith("..") or not logical.endswith(end):
        return tree
    return logical[: len(logical) - len(end)] if end else logical


def _git(*arguments: str) -> str:
    git = find_program("git", os.environ)
    if git is None:
        raise RefusedError("--repo needs git, which is not on PATH; use --here")
    try:
        done = subprocess.run(
            [git, *arguments], capture_output=True, timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise RefusedError(f"git did not answer in {TIMEOUT_S} s; use --here") from None
    if done.returncode:
        raise RefusedError("the present folder is in no Git repository; use --here")
    return os.fsdecode(done.stdout)
