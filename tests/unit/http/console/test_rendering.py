"""Every page is one of the navigation, or leads back to it; no value is missing silently."""

from __future__ import annotations

import jinja2
import pytest

from broker.http.console.rendering import FOLDER, NAVIGATION, POLICY, STATIC, PageTemplates

pytestmark = pytest.mark.requirement("OPS-06")


def test_the_policy_lets_no_script_of_a_page_run() -> None:
    rules = dict(each.strip().split(" ", 1) for each in POLICY.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == "'self'"
    assert "unsafe" not in POLICY
    assert rules["frame-ancestors"] == "'none'"


def test_the_files_are_those_that_are_served() -> None:
    assert {each.name for each in (FOLDER / "static").iterdir()} == set(STATIC)


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        PageTemplates().text("problem", title="x")


def test_no_page_is_twice_in_the_navigation() -> None:
    paths = [path for _, links in NAVIGATION for path, _ in links]
    assert len(set(paths)) == len(paths)
