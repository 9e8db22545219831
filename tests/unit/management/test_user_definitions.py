"""Users as definitions: with verifiers only on request, and never the user that asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.definitions import DefinitionSite

pytestmark = pytest.mark.requirement("OPS-12")


@pytest.fixture
def site(tmp_path: Path) -> DefinitionSite:
    found = DefinitionSite(tmp_path)
    found.users.add("shop", "sesame", roles=["ordering"], certificates=["shop.example"])
    found.users.passwd("shop", "barley", keep_old_s=3600)
    found.users.add("idle", "poppy")
    found.users.set_enabled("idle", enabled=False)
    return found


@pytest.fixture
def new(tmp_path: Path) -> DefinitionSite:
    (tmp_path / "new").mkdir()
    return DefinitionSite(tmp_path / "new")


async def test_with_secrets_passwords_go_with_the_user(
    site: DefinitionSite, new: DefinitionSite
) -> None:
    exported = await site.export("users", secrets=True)
    assert await new.bring("users", exported, secrets=True) == [
        ("shop", "added"),
        ("idle", "added"),
    ]
    assert await new.export("users", secrets=True) == exported
    assert new.users.check("shop", "barley")
    assert new.users.check("shop", "sesame"), "the former password, which enters for an hour"
    assert not new.users.is_enabled("idle")
    told = await new.bring("users", exported, secrets=True)
    assert {result for _, result in told} == {"unchanged"}


async def test_without_secrets_there_are_none(site: DefinitionSite, new: DefinitionSite) -> None:
    exported = await site.export("users")
    assert "argon2" not in str(exported)
    assert "SCRAM" not in str(exported)
    assert set(exported[0]) == {"name", "roles", "enabled", "certificates"}
    told = dict(await new.bring("users", exported))
    assert told["shop"] == "added", "it has a certificate to log in with"
    assert told["idle"].startswith("added: it has no password yet")
    assert await new.export("users") == exported


async def test_verifiers_count_only_with_secrets(site: DefinitionSite, new: DefinitionSite) -> None:
    await new.bring("users", await site.export("users", secrets=True))
    account = new.users.account("shop")
    assert account is not None
    assert not account.has_password


async def test_an_existing_user_keeps_its_password(site: DefinitionSite) -> None:
    exported = await site.export("users")
    changed = [{**exported[0], "roles": ["helping"]}, exported[1]]
    assert await site.bring("users", changed, dry_run=True) == [
        ("shop", "changed"),
        ("idle", "unchanged"),
    ]
    assert site.users.roles_of("shop") == {"ordering"}
    await site.bring("users", changed)
    assert site.users.roles_of("shop") == {"helping"}
    assert site.users.check("shop", "barley")


async def test_the_user_that_asks_is_not_changed(tmp_path: Path) -> None:
    site = DefinitionSite(tmp_path)
    ((_, told),) = await site.bring("users", [{"name": "first", "roles": ["helping"]}])
    assert told.startswith("refused: this is the user that asks")


BAD = [
    pytest.param({"name": "a:b"}, "no colon", id="a name"),
    pytest.param({"name": "a", "roles": "admin"}, "not a list", id="roles"),
    pytest.param({"name": "a", "colour": "red"}, "there is no key colour", id="an unknown key"),
    pytest.param({"name": "a", "password": "plain"}, "password", id="no hash"),
    pytest.param({"name": "a", "changed_at": "soon"}, "is no time such as", id="no time"),
]


@pytest.mark.parametrize(("definition", "note"), BAD)
async def test_a_wrong_one_is_refused(
    new: DefinitionSite, definition: dict[str, object], note: str
) -> None:
    ((_, told),) = await new.bring("users", [definition], secrets=True)
    assert told.startswith("refused: ")
    assert note in told
    assert new.users.names() == []
