"""Definitions by management: pages, rights, the audit, and nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.definitions import DefinitionSite
from tests.support.notices import notice_texts

pytestmark = pytest.mark.requirement("OPS-12")


@pytest.fixture
def site(tmp_path: Path) -> DefinitionSite:
    return DefinitionSite(tmp_path)


def other(tmp_path: Path, *, limited: bool = False) -> DefinitionSite:
    folder = tmp_path / "other"
    folder.mkdir()
    return DefinitionSite(folder, limited=limited)


async def test_nodes_are_exported_and_imported(tmp_path: Path) -> None:
    site = DefinitionSite(tmp_path, limited=True)
    site.manager.ask("CREATE", "queue", "made")
    site.broker.fill("small.by-client")
    site.manager.ask("CREATE", "topic", "news")
    queues, topics = await site.export("queues"), await site.export("topics")
    assert [(each["name"], each["auto_created"]) for each in queues] == [
        ("made", False),
        ("small.by-client", True),
    ]
    settings = queues[1]["settings"]
    assert isinstance(settings, dict)
    assert (settings["max_messages"], settings["full"]) == (3, "reject")
    new = other(tmp_path, limited=True)
    assert await new.bring("queues", queues, dry_run=True) == [
        ("made", "added"),
        ("small.by-client", "added"),
    ]
    assert await new.export("queues") == []
    await new.bring("queues", queues)
    await new.bring("topics", topics)
    assert (await new.export("queues"), await new.export("topics")) == (queues, topics)
    assert await new.bring("queues", queues) == [
        ("made", "unchanged"),
        ("small.by-client", "unchanged"),
    ]


async def test_settings_of_a_node_that_differ_are_noted(tmp_path: Path) -> None:
    site = DefinitionSite(tmp_path, limited=True)
    site.broker.fill("small.x")
    ((name, told),) = await other(tmp_path).bring("queues", await site.export("queues"))
    assert name == "small.x"
    assert told.startswith("added: set in the broker's settings file: full = 'reject'")
    assert "max_messages = 3 (here 0)" in told


async def test_temporary_nodes_are_not_exported(site: DefinitionSite) -> None:
    site.broker.router.create_temporary("queue", 7)
    site.manager.ask("CREATE", "queue", "made")
    assert [each["name"] for each in await site.export("queues")] == ["made"]


async def test_pages(site: DefinitionSite) -> None:
    for name in "abcde":
        site.manager.ask("CREATE", "queue", name)
    found: list[object] = []
    offset: object = 0
    while offset is not None:
        page = (await site.ask("EXPORT", "queues", offset=offset, count=2)).map
        listed = page["definitions"]
        assert isinstance(listed, list)
        assert len(listed) <= 2
        found += [each["name"] for each in listed]
        offset = page["next"]
    assert found == list("abcde")
    assert site.manager.query("definitions").rows[0]["version"] == 1


BAD_NODES = [
    pytest.param({}, "name is missing", id="no name"),
    pytest.param({"name": 1}, "name must be a text", id="no text"),
    pytest.param({"name": "a", "nam": 1}, "there is no key nam", id="an unknown key"),
    pytest.param({"name": "$management"}, "$", id="a reserved name"),
    pytest.param({"name": "a", "auto_created": 1}, "true or false", id="no boolean"),
]


@pytest.mark.parametrize(("definition", "note"), BAD_NODES)
async def test_a_wrong_node_is_refused(
    site: DefinitionSite, definition: dict[str, object], note: str
) -> None:
    ((_, told),) = await site.bring("queues", [definition])
    assert told.startswith("refused: ")
    assert note in told
    assert site.broker.router.queues == {}


BAD_REQUESTS = [
    pytest.param("IMPORT", "queues", {}, 400, "version 1", id="no version"),
    pytest.param("IMPORT", "queues", {"version": 2}, 400, "version 1", id="another version"),
    pytest.param("IMPORT", "queues", {"version": 1}, 400, "must be a list", id="no definitions"),
    pytest.param(
        "IMPORT", "queues", {"version": 1, "definitions": ["x"]}, 400, "list of maps", id="no maps"
    ),
    pytest.param(
        *("IMPORT", "queues", {"version": 1, "definitions": [{"name": b"x"}]}, 400, "type bytes"),
        id="binary",
    ),
    pytest.param(
        *("IMPORT", "queues", {"version": 1, "definitions": [{1: "x"}]}, 400, "must be texts"),
        id="a key that is no text",
    ),
    pytest.param("EXPORT", "messages", {}, 404, "there are roles, rules", id="no such kind"),
    pytest.param("EXPORT", "queues", {"count": 501}, 400, "count must be", id="a large page"),
]


@pytest.mark.parametrize(("operation", "kind", "arguments", "status", "text"), BAD_REQUESTS)
async def test_a_wrong_request_is_refused(
    site: DefinitionSite,
    operation: str,
    *,
    kind: str,
    arguments: dict[str, object],
    status: int,
    text: str,
) -> None:
    told = await site.ask(operation, kind, **arguments)
    assert told.status == status
    assert text in told.description


RIGHTS = [
    # the user `viewer` may view and edit definitions and queues
    pytest.param("EXPORT", "queues", 200, id="a kind that may be viewed"),
    pytest.param("EXPORT", "users", 403, id="users"),
    pytest.param("EXPORT", "rules", 403, id="rules"),
    pytest.param("EXPORT-SECRETS", "users", 403, id="verifiers"),
    pytest.param("IMPORT", "queues", 200, id="a kind that may be edited"),
    pytest.param("IMPORT", "subscriptions", 403, id="subscriptions"),
    pytest.param("IMPORT", "limits", 403, id="limits"),
]


@pytest.mark.parametrize(("operation", "kind", "status"), RIGHTS)
async def test_each_kind_takes_the_right_on_its_part(
    tmp_path: Path, operation: str, kind: str, status: int
) -> None:
    site = DefinitionSite(tmp_path, user="viewer")
    arguments = {"version": 1, "definitions": []} if operation == "IMPORT" else {}
    assert (await site.ask(operation, kind, **arguments)).status == status


async def test_the_audit_records_an_import_and_an_export_with_secrets(
    site: DefinitionSite,
) -> None:
    site.users.add("shop", "sesame")
    exported = await site.export("users", secrets=True)
    await site.export("users")
    assert await site.export("queues", secrets=True) == [], "which have none"
    await site.bring("queues", [{"name": "made"}])
    await site.bring("users", [{**exported[0], "name": "copy"}], secrets=True)
    actions = [event.action for event in site.audit.events]
    assert actions.count("definitions.export-secrets") == 2
    assert actions.count("definitions.import") == 2
    assert "definitions.export" not in actions
    assert {"node.created", "user.added"} <= set(actions)
    told = str([(each.before, each.after) for each in site.audit.events])
    assert "argon2" not in told
    assert "SCRAM-SHA-256$" not in told
    log = [*site.broker.watcher.events, *notice_texts(site.broker.router.notices)]
    assert not [each for each in log if "argon2" in each]
    assert [each for each in log if "imported queues: added 1" in each]
    exports = [each for each in log if "exported" in each]
    assert len(exports) == 1
    assert "exported users with the verifiers of passwords" in exports[0]
