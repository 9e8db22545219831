"""Roles, rules and limits as definitions: an import changes the rules file, and applies it."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.security.rules_file import read_rules
from tests.support.definitions import RULES, DefinitionSite

pytestmark = pytest.mark.requirement("OPS-12")

KINDS = ("roles", "rules", "limits")


@pytest.fixture
def site(tmp_path: Path) -> DefinitionSite:
    return DefinitionSite(tmp_path)


async def test_they_are_the_same_after_an_import(site: DefinitionSite, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    new = DefinitionSite(tmp_path / "new", rules="")
    for kind in KINDS:
        exported = await site.export(kind)
        assert {result for _, result in await new.bring(kind, exported)} == {"added"}
        assert await new.export(kind) == exported
        assert {result for _, result in await new.bring(kind, exported)} == {"unchanged"}
    assert [rule.id for rule in new.broker.container.access.rules if not rule.is_built_in] == [
        "orders",
        "viewing",
    ]


async def test_a_change_keeps_the_comments_of_others(site: DefinitionSite) -> None:
    rules = await site.export("rules")
    told = await site.bring("rules", [{**rules[1], "can": ["view"]}])
    assert told == [("viewing", "changed")]
    text = site.rules_file.read_text()
    assert "# the rules of the shop" in text
    assert "# who sends orders" in text
    found = {rule.id: rule for rule in read_rules(site.rules_file).rules}
    assert found["viewing"].can == ("view",)


async def test_a_dry_run_changes_nothing(site: DefinitionSite) -> None:
    told = await site.bring("roles", [{"name": "new", "users": ["ann"]}], dry_run=True)
    assert told == [("new", "added")]
    assert site.rules_file.read_text() == RULES


async def test_limits_of_the_same_users_are_the_same_limit(site: DefinitionSite) -> None:
    limits = [{"who": ["role:ordering"], "connections": 7}, {"who": ["user:ann"], "links": 2}]
    assert await site.bring("limits", limits) == [
        ("role:ordering", "changed"),
        ("user:ann", "added"),
    ]
    assert await site.export("limits") == limits
    again = [*limits, {"who": ["user:ann"], "links": 3}]
    assert [result for _, result in await site.bring("limits", again)] == [
        "unchanged",
        "unchanged",
        "added",
    ]


BAD = [
    pytest.param("roles", {"name": "x", "users": []}, "list of texts", id="no users"),
    pytest.param("roles", {"name": "x", "userz": []}, "there is no key userz", id="a key"),
    pytest.param("rules", {"id": "x"}, "who must be", id="half a rule"),
    pytest.param("rules", {"id": "?"}, "a rule has an id", id="no id"),
    pytest.param("limits", {"who": ["user:x"]}, "limits nothing", id="half a limit"),
]


@pytest.mark.parametrize(("kind", "definition", "note"), BAD)
async def test_a_wrong_one_is_refused(
    site: DefinitionSite, kind: str, definition: dict[str, object], note: str
) -> None:
    ((_, told),) = await site.bring(kind, [definition])
    assert told.startswith("refused: ")
    assert note in told
    assert site.rules_file.read_text() == RULES


async def test_without_a_file_all_are_refused(site: DefinitionSite) -> None:
    site.rules_file.unlink()
    ((_, told),) = await site.bring("roles", [{"name": "x", "users": ["ann"]}])
    assert told.startswith("refused: ")
    assert "there is no such file" in told
