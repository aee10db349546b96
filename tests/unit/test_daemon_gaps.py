"""How fast the middle of large files is looked through."""

import pytest

from sessiond.daemon import gaps
from sessiond.daemon.gaps import GapBudget

NOW = 1000.0
MIB = 1 << 20


def test_after_so_many_bytes_the_next_ones_wait_as_long_as_those_may_take():
    assert GapBudget().spend(64 * MIB, NOW) == NOW + 2


def test_a_day_ends_at_its_budget_and_the_next_one_begins_after_24_hours():
    budget = GapBudget()
    assert budget.wait_until(NOW) == NOW
    budget.spend(4096 * MIB - 1, NOW)
    assert budget.wait_until(NOW + 60) == NOW + 60
    budget.spend(1, NOW + 60)
    assert budget.wait_until(NOW + 120) == NOW + 24 * 3600
    assert budget.wait_until(NOW + 24 * 3600) == NOW + 24 * 3600
    assert budget.wait_until(NOW + 24 * 3600 + 1) == NOW + 24 * 3600 + 1


@pytest.mark.parametrize("now", [0.0, NOW])
def test_a_machine_that_has_just_started_has_a_budget(now):
    assert GapBudget().wait_until(now) == now


def test_the_figures_are_the_promised_ones():
    assert (gaps.BYTES_S, gaps.BYTES_DAY) == (32 * MIB, 4096 * MIB)
