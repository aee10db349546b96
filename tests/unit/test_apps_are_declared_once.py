"""An app is named by its declaration and by what is its own; everything else derives from the declaration.

Looked at is every string and every identifier of the program, docstrings and help included.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from sessiond import apps
from sessiond.config import Homes
from sessiond.provider import load, load_dialogue

ROOT = Path(__file__).parents[2]
OWN = ("sessiond/apps.py", *[f"sessiond/providers/{app.name.replace('-', '_')}/" for app in apps.APPS])
"""What may name an app: the declaration, and the app's own package."""
EXCEPTIONS = {
    "sessiond/store/facts.py": "the words that recur in stored facts: statistics, part of the stored form",
    "sessiond/history.py": "the example of the library's page",
}

NAMES = {
    word.lower()
    for app in apps.APPS
    for word in (
        app.name, app.label, *app.aliases, *[name for name, _ in app.home_variables], *app.part_variables,
        app.provider.rpartition(":")[2],
    )
}  # fmt: skip
NAMED = re.compile(r"(?<![a-z0-9])(?:" + "|".join(sorted(re.escape(n) for n in NAMES)) + r")(?![a-z0-9])")


def sources():
    for top in ("sessiond", "cli/sessions_cli"):
        for path in sorted((ROOT / top).rglob("*.py")):
            relative = path.relative_to(ROOT).as_posix()
            if not relative.startswith(OWN):
                yield relative, path


def texts(tree):
    """(line, text) of every string and identifier."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "module", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield getattr(node, "lineno", 0), value
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            yield node.lineno, node.value if isinstance(node.value, str) else node.value.decode("latin-1")


def naming(source):
    """Lines of a program text that name an app."""
    found = set()
    for line, text in texts(ast.parse(source)):
        for spelling in (text.lower(), text.lower().replace("_", "-"), text.lower().replace("_", " ")):
            if NAMED.search(spelling):
                found.add((line, text[:60]))
    return sorted(found)


@pytest.mark.parametrize("relative", [relative for relative, _ in sources() if relative not in EXCEPTIONS])
def test_nothing_else_in_the_program_names_an_app(relative):
    assert naming((ROOT / relative).read_text()) == []


@pytest.mark.parametrize("relative", EXCEPTIONS)
def test_an_exception_is_still_one(relative):
    assert naming((ROOT / relative).read_text())


@pytest.mark.parametrize(
    "source",
    ['x = "codex"', "codex_homes = ()", "def claude(): ...", "import sessiond.providers.codex", 'f(app="claude-code")',
     '"""Sessions of Claude Code."""', "x.CODEX_HOME", 'b"codex"'],
)  # fmt: skip
def test_a_name_is_seen_wherever_it_stands(source):
    assert naming(source)


def test_no_sql_or_template_names_an_app():
    for pattern in ("sessiond/**/*.sql", "systemd/*", "launchd/*"):
        for path in ROOT.glob(pattern):
            lines = [line for line in path.read_text().lower().splitlines() if not line.startswith("#")]
            assert not [line for line in lines if NAMED.search(line)], path


# -- what each declared app has ----------------------------------------------------------------------------------------

every_app = pytest.mark.parametrize("app", apps.APPS, ids=apps.NAMES)


@every_app
def test_each_app_has_a_provider_that_bears_its_name(app):
    assert load(Homes({app.name: ("/nowhere",)}), app.name).app == app.name


@every_app
def test_each_app_has_a_log_reader(app):
    assert all(callable(getattr(load_dialogue(app.name), role)) for role in ("records", "opening", "entry", "said"))


@every_app
def test_the_page_of_formats_has_what_is_known_of_each_app(app):
    assert (ROOT / "docs" / "formats" / f"{app.name}.md").is_file()


@every_app
def test_each_app_has_fixtures_with_expected_rows(app):
    assert list((ROOT / "fixtures" / app.name).glob("*/expected.json"))
    assert (ROOT / "fixtures" / app.name / "sample" / "home").is_dir()


@every_app
def test_how_each_app_is_resumed_is_tested(app):
    assert (ROOT / "tests" / "resume" / f"test_resume_{app.name.replace('-', '_')}_flags.py").is_file()


@every_app
@pytest.mark.parametrize("page", ["README.md", "docs/cli.md", "docs/resume.md", "docs/configuration.md"])
def test_the_pages_name_each_app(app, page):
    assert app.label in (ROOT / page).read_text()


def test_names_aliases_and_variables_are_told_apart():
    typed = [text for app in apps.APPS for text in (app.name, *app.aliases)]
    variables = [v for app in apps.APPS for v in (*[name for name, _ in app.home_variables], *app.part_variables)]
    assert len(set(typed)) == len(typed)
    assert len(set(variables)) == len(variables)


def test_an_app_is_found_by_its_name_and_by_each_alias():
    for app in apps.APPS:
        assert {apps.named(text) for text in (app.name, *app.aliases)} == {app}


def test_what_is_no_app_is_not_found():
    with pytest.raises(KeyError):
        apps.named("nonesuch")
