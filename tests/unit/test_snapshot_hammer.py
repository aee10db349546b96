"""The short version of `python -m tests.kit.snapshot_hammer`: two weak ways of reading fail where ours does not."""

from __future__ import annotations

import pytest

from tests.kit.snapshot_hammer import hammer, weak_controls


@pytest.mark.parametrize(("journal", "limit_s"), [("wal", 8), ("delete", 3)])
def test_no_copy_is_torn_or_stale_under_a_writer_that_does_everything(journal, limit_s):
    verdicts = hammer(journal, reads=1000, seed=3, limit_s=limit_s)
    for name in ("snapshot", "kept copy"):
        assert verdicts[name]["good"] >= 5
        assert (verdicts[name]["torn"], verdicts[name]["stale"]) == (0, 0)
    assert weak_controls(verdicts) == [], f"the hammer is too weak: {verdicts}"
