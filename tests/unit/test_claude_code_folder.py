"""The name of a project folder and the directory it stands for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiond.providers.claude_code.folder import folder_name, matching, repository

names = st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=30)
directories = st.lists(names, min_size=1, max_size=12).map(lambda parts: "/" + "/".join(parts))


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("/Users/alex/code/shop-api", "-Users-alex-code-shop-api"),
        ("/home/sam/my.app_2", "-home-sam-my-app-2"),
        ("/home/sam/Caf\u00e9", "-home-sam-Caf-"),
        ("/home/sam/Cafe\u0301", "-home-sam-Caf-"),
        ("/home/sam/\U0001f600", "-home-sam---"),
        ("/" + "a" * 199, "-" + "a" * 199),
    ],
)
def test_every_unit_that_is_no_letter_or_digit_becomes_a_dash(directory, name):
    assert folder_name(directory) == name


@pytest.mark.parametrize(
    ("directory", "end"),
    [
        ("/" + "a" * 200, "aaaaa-b6ymvl"),
        ("/home/sam/" + "\U0001f600" * 100, "------qr3qrh"),
        ("/x/" + "\u00e9" * 250, "------9cs5s6"),
    ],
)
def test_a_long_name_is_cut_and_numbered(directory, end):
    """The ends were computed with JavaScript's own arithmetic, which is what Claude Code runs on."""
    name = folder_name(directory)
    assert name[195:] == end
    assert name[200] == "-"


@given(directories)
def test_a_directory_stands_for_its_own_folder(directory):
    assert matching(directory, folder_name(directory)) == directory


@given(directories, st.lists(names, min_size=1, max_size=3))
def test_a_directory_below_leads_back_to_the_one_the_folder_is_named_after(directory, below):
    found = matching(directory + "/" + "/".join(below), folder_name(directory))
    assert found is not None
    assert folder_name(found) == folder_name(directory)


def test_another_directory_does_not_stand_for_the_folder():
    assert matching("/home/sam/other", "-home-sam-app") is None
    assert matching("/home/sam", "-home-sam-app") is None
    assert matching("relative", "-home") is None


def test_a_worktree_below_a_repository_names_it():
    assert repository("/srv/app/.claude/worktrees/fix/src", None) == "/srv/app"


def test_a_recorded_worktree_names_the_directory_the_session_came_from():
    assert repository("/srv/trees/fix/src", ("/srv/trees/fix", "/srv/app")) == "/srv/app"


def test_a_session_that_went_elsewhere_has_no_repository_of_that_worktree():
    assert repository("/home/sam/other", ("/srv/trees/fix", "/srv/app")) is None
    assert repository(None, None) is None
