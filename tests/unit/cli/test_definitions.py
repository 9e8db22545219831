"""`jms-broker definitions`: exported, imported into an empty broker, and exported again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("proton")

from proton import Described, Message, Terminus, symbol
from typer.testing import CliRunner, Result

from broker import Broker
from broker.cli.application import application
from broker.security.users import Users
from tests.interop.proton_peer import Peer, asking

pytestmark = pytest.mark.requirement("OPS-12")

ADDRESSES: Final = [
    {
        "pattern": "small.*",
        "dead_letter": "lost",
        "expiry": "late",
        "dead_letter_properties": True,
        "max_delivery_count": 3,
        "redelivery_delay_ms": 100,
        "redelivery_backoff": 2.5,
        "redelivery_delay_max_ms": 1000,
        "max_messages": 10,
        "max_bytes": 100_000,
        "full": "drop-oldest",
        "duplicate_window": 100,
        "duplicate_window_ms": 60_000,
        "deliver_before_commit": False,
        "event_log": True,
        "auto_delete_after_ms": 3_600_000,
    },
    {"pattern": "alone", "exclusive": True},
]

RULES: Final = """\
[roles]
ordering = ["shop"]

[[rule]]
id = "orders"
who = ["role:ordering"]
can = ["produce"]
on = ["queue:orders.#"]
when = {from = ["127.0.0.0/8"]}

[[rule]]
id = "no-payroll"
effect = "deny"
who = ["authenticated"]
can = ["*"]
on = ["queue:payroll.#"]

[[limit]]
who = ["role:ordering"]
connections = 50
"""

BY_HAND: Final = {
    "jms_broker_definitions": 1,
    "queues": [{"name": "plain"}, {"name": "small.made"}, {"name": "alone", "creator": "shop"}],
    "topics": [{"name": "news"}],
    "subscriptions": [
        {"name": "team", "container_id": "shop", "address": "news", "shared": True},
        {"name": "all", "address": "small.#", "shared": True, "selector": "price > 3"},
        {"name": "others", "container_id": "shop", "address": "news/eu", "no_local": True},
    ],
}

KINDS: Final = {"roles", "rules", "limits", "users", "queues", "topics", "subscriptions"}


class Typed:
    """The command `jms-broker definitions` for one broker."""

    def __init__(self, broker: Broker) -> None:
        self.url: Final = broker.url.replace("://", "://root:sesame@")

    def run(self, *arguments: str, typed: str = "") -> Result:
        return CliRunner().invoke(
            application, ["definitions", *arguments, "--url", self.url], input=typed
        )

    def exported(self, *arguments: str) -> dict[str, list[dict[str, object]]]:
        done = self.run("export", *arguments)
        assert done.exit_code == 0, done.stderr
        found: dict[str, list[dict[str, object]]] = json.loads(done.stdout)
        return found


@contextmanager
def broker_in(folder: Path, store: str, *, rules: str = "") -> Iterator[Broker]:
    """Yield a broker with one administrator."""
    folder.mkdir()
    users, acl = folder / "users.toml", folder / "acl.toml"
    Users(users).add("root", "sesame", administrator=True)
    acl.write_text(rules)
    place = store if store == "memory" else f"{store}{folder}/store.db"
    with Broker(store=place, users_file=users, acl_file=acl, address=ADDRESSES) as broker:
        yield broker


def fill(folder: Path, typed: Typed) -> None:
    """Give a broker definitions of each kind, by hand and by a client."""
    users = Users(folder / "users.toml")
    users.add("shop", "tulip", roles=["ordering"], certificates=["shop.example"])
    users.add("idle", "tulip", roles=["ordering"], scram=False)
    users.set_enabled("idle", enabled=False)
    with Peer(typed.url, container_id="desk", user="root", password="sesame") as peer:
        receiver = peer.new_receiver("news", name="lasting")
        receiver.source.durability = Terminus.DELIVERIES
        receiver.source.expiry_policy = Terminus.EXPIRE_NEVER
        selector = Described(symbol("apache.org:selector-filter:string"), "colour = 'red'")
        receiver.source.filter.put_dict({symbol("mine"): selector})
        asking(receiver.source, "topic")
        peer.attach(receiver).detach()
        peer.send(peer.sender("small.by-client"), Message(body="x"))
        peer.round_trip()
    document = json.dumps(BY_HAND)
    assert typed.run("import", "-", typed=document).exit_code == 0


@pytest.mark.parametrize("store", ["memory", "sqlite:///"])
def test_an_import_into_an_empty_broker_is_identical_when_exported_again(
    tmp_path: Path, store: str
) -> None:
    with broker_in(tmp_path / "old", store, rules=RULES) as broker:
        fill(tmp_path / "old", Typed(broker))
        exported, without = Typed(broker).exported("--secrets"), Typed(broker).exported()
    document = tmp_path / "definitions.json"
    # the administrator of the new broker is another account of that name, and asks
    exported["users"] = [each for each in exported["users"] if each["name"] != "root"]
    document.write_text(json.dumps(exported))
    with broker_in(tmp_path / "new", store) as broker:
        typed = Typed(broker)
        planned = typed.run("import", str(document), "--secrets", "--dry-run")
        assert planned.exit_code == 0, planned.stderr
        assert "added 15, changed 0, unchanged 0, refused 0" in planned.stderr
        assert typed.exported()["queues"] == []
        done = typed.run("import", str(document), "--secrets")
        assert done.exit_code == 0, done.stderr
        again = typed.exported("--secrets")
        again["users"] = [each for each in again["users"] if each["name"] != "root"]
        assert again == exported
        assert typed.exported() == without
        repeated = typed.run("import", str(document), "--secrets")
        assert repeated.exit_code == 0
        assert "added 0, changed 0, unchanged 15, refused 0" in repeated.stderr
    assert set(exported) == KINDS | {"jms_broker_definitions"}
    assert all(exported[kind] for kind in KINDS)
    assert len(exported["subscriptions"]) == 4
    assert "argon2" in str(exported)
    assert "argon2" not in str(without)
    assert "SCRAM-SHA" not in str(without)


@pytest.mark.parametrize("store", ["sqlite:///"])
def test_an_import_outlasts_a_restart(tmp_path: Path, store: str) -> None:
    with broker_in(tmp_path / "old", store) as broker:
        fill(tmp_path / "old", Typed(broker))
        exported = Typed(broker).exported("--secrets")
    folder = tmp_path / "old"
    place = f"{store}{folder}/store.db"
    users, acl = folder / "users.toml", folder / "acl.toml"
    with Broker(store=place, users_file=users, acl_file=acl, address=ADDRESSES) as broker:
        assert Typed(broker).exported("--secrets") == exported


def test_a_dash_is_standard_output(tmp_path: Path) -> None:
    with broker_in(tmp_path / "old", "memory") as broker:
        assert json.loads(Typed(broker).run("export", "-").stdout)["jms_broker_definitions"] == 1


def test_a_file_is_new_and_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    with broker_in(tmp_path / "old", "memory") as broker:
        assert Typed(broker).run("export", str(file)).exit_code == 0
        assert file.stat().st_mode & 0o777 == 0o600
        again = Typed(broker).run("export", str(file))
        assert (again.exit_code, "File exists" in again.stderr) == (1, True)


def test_long_lists_are_sent_in_parts(tmp_path: Path) -> None:
    queues = [{"name": f"queue-{number:04}-{'x' * 200}"} for number in range(700)]
    document = json.dumps({"jms_broker_definitions": 1, "queues": queues})
    with broker_in(tmp_path / "old", "memory") as broker:
        done = Typed(broker).run("import", "-", "--json", typed=document)
        assert done.exit_code == 0, done.stderr
        assert len(done.stdout.splitlines()) == 700
        found = Typed(broker).exported()["queues"]
    assert [each["name"] for each in found] == [each["name"] for each in queues]


ERRORS: Final = [
    pytest.param("{", 2, "no JSON", id="no JSON"),
    pytest.param("[]", 2, "there is no jms_broker_definitions", id="no document"),
    pytest.param('{"jms_broker_definitions": 2}', 2, "version 2", id="another version"),
    pytest.param('{"jms_broker_definitions": 1, "x": []}', 2, "no kind x", id="another kind"),
    pytest.param('{"jms_broker_definitions": 1, "queues": [1]}', 2, "no list", id="no objects"),
    pytest.param(
        '{"jms_broker_definitions": 1, "queues": [{"name": "a"}, {"name": ""}]}',
        *(1, "nothing was imported"),
        id="a refused one",
    ),
]


@pytest.mark.parametrize(("text", "status", "expected"), ERRORS)
def test_a_wrong_document(tmp_path: Path, text: str, status: int, expected: str) -> None:
    with broker_in(tmp_path / "old", "memory") as broker:
        done = Typed(broker).run("import", "-", typed=text)
        assert (done.exit_code, expected in done.stderr) == (status, True), done.stderr
        assert Typed(broker).exported()["queues"] == []
