"""docs/faults.md is complete and true: every id has its row, and every test that it names is there."""

from __future__ import annotations

import glob
import os
import re

import pytest

from tests.kit.world import REPOSITORY

LAST = {"W": 16, "F": 22, "S": 13, "I": 16, "D": 15, "T": 1, "H": 16}
IDS = [f"{group}{number}" for group, last in LAST.items() for number in range(1, last + 1)]
NOT_APPLICABLE = {"H14"}


def rows():
    with open(os.path.join(REPOSITORY, "docs", "faults.md"), encoding="utf-8") as file:
        return dict(re.findall(r"^\| ([A-Z]\d+) \| (.*)$", file.read(), re.MULTILINE))


def all_tests():
    found = set()
    for path in glob.glob(os.path.join(REPOSITORY, "tests", "**", "test_*.py"), recursive=True):
        with open(path, encoding="utf-8") as file:
            found.update(re.findall(r"^def (test_\w+)", file.read(), re.MULTILINE))
    return found


TESTS = all_tests()


@pytest.mark.parametrize("fault", IDS)
def test_every_fault_has_a_row_that_names_a_test(fault):
    row = rows()[fault]
    named = re.findall(r"`(test_\w+)`", row)
    assert named or fault in NOT_APPLICABLE or "tests/unit/" in row
    assert [name for name in named if name not in TESTS] == []


def test_the_page_has_no_row_of_an_unknown_fault():
    assert set(rows()) == set(IDS)


def test_every_test_that_wears_an_id_is_in_its_row():
    page = rows()
    missing = [
        (name, fault)
        for name in sorted(TESTS)
        for fault in re.findall(r"(?:(?<=^test_)|(?<=_))([wfsidth]\d{1,2})(?=_)", name)
        if fault.upper() in page and name.startswith(f"test_{fault}_") and f"`{name}`" not in page[fault.upper()]
    ]
    assert missing == []
