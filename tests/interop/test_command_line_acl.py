"""`jms-broker acl` as typed, at a running broker: its rules, with the roles of its users."""

from __future__ import annotations

import json

import pytest

from tests.interop.broker_process import PASSWORD, USER
from tests.interop.secured_broker import READER, SHOP, SHOP_PASSWORD, SecuredBroker
from tests.interop.typed import Client


@pytest.fixture
def client(secured_broker: SecuredBroker) -> Client:
    return Client(secured_broker.url.replace("amqp://", f"amqp://{USER}:{PASSWORD}@"))


def test_a_decision_with_the_roles_that_the_broker_knows(client: Client) -> None:
    asked = ("acl", "explain", "queue:read.x", "--verb", "receive", "--user", READER)
    assert client.prints(*asked).decode().splitlines()[:3] == [
        "decision     allowed",
        "canonical    queue:read.x",
        "rule         reading-receive",
    ]
    refused = ("acl", "explain", "queue:closed.x", "--verb", "send", "--user", SHOP, "--json")
    told = json.loads(client.prints(*refused))
    assert (told["decision"], told["rule"]) == ("refused", "closed")


def test_the_rules_in_force(client: Client, secured_broker: SecuredBroker) -> None:
    place = secured_broker.url.replace("amqp://", f"amqp://{USER}:***@")
    assert client.prints("acl", "check") == f"{place}: sound: rules 6, roles 0\n".encode()
    shown = client.prints("acl", "show").decode().splitlines()
    assert [line.split("\t")[0] for line in shown] == [
        *("id", "closed", "dynamic", "passing-on"),
        *("reading-connect", "reading-durable", "reading-receive"),
    ]
    assert b"built-in:admin-everything\tallow" in client.prints("acl", "show", "--built-in")
    file = secured_broker.file("acl.toml")
    assert client.prints("acl", "show", file).decode().splitlines() == shown


def test_who_may_not_ask(secured_broker: SecuredBroker) -> None:
    shop = secured_broker.url.replace("amqp://", f"amqp://{SHOP}:{SHOP_PASSWORD}@")
    refused = Client(shop).run("acl", "check")
    assert (refused.returncode, refused.stdout) == (4, b"")
    assert b"not allowed to view management:acl" in refused.stderr
