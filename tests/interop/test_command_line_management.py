"""`jms-broker node …` and `connection …` as typed, against a running broker."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.interop.broker_process import PASSWORD, USER, Broker, BrokerProcess, environment
from tests.interop.typed import SECONDS, Client


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker.url)


def records(client: Client, *arguments: str) -> list[dict[str, object]]:
    """Return the records that a command prints with --json."""
    return [json.loads(line) for line in client.prints(*arguments, "--json").splitlines()]


# -- nodes


def test_a_queue_from_creation_to_deletion(client: Client, address: str) -> None:
    created = f"created queue {address}\n".encode()
    assert client.prints("node", "create", address) == created
    client.prints("send", address, "a", "b", "c")
    (record,) = records(client, "node", "list", address)
    assert (record["name"], record["type"], record["messages"]) == (address, "queue", 3)
    assert client.prints("node", "purge", address) == b"purged 3\n"
    assert b"messages            0\n" in client.prints("node", "show", address)
    assert client.prints("node", "delete", address) == f"deleted queue {address}\n".encode()
    assert records(client, "node", "list", address) == []


def test_a_queue_and_a_topic_of_one_name(client: Client, address: str) -> None:
    client.prints("node", "create", address)
    client.prints("node", "create", address, "--kind", "topic")
    unsure = client.run("node", "delete", address)
    assert unsure.returncode == 2
    assert b"say which with --kind" in unsure.stderr
    (deleted,) = records(client, "node", "delete", address, "--kind", "queue")
    assert deleted == {"deleted": address, "type": "queue"}
    (left,) = records(client, "node", "show", address)
    assert left["type"] == "topic"


def test_a_list_for_programs_and_for_people(client: Client, address: str) -> None:
    client.prints("node", "create", address)
    printed = client.prints("node", "list", address, "--kind", "queue").decode().splitlines()
    assert printed[0].split("\t")[:3] == ["name", "type", "messages"]
    assert printed[1].split("\t")[:3] == [address, "queue", "0"]
    table = client.shows("node", "list", address)
    assert b"consumers" in table
    assert "│".encode() in table


def test_more_nodes_than_fit_on_a_page(own_broker: BrokerProcess) -> None:
    """One connection creates them all: 600 commands would take minutes."""
    from broker.cli.requests import managed

    client = Client(own_broker.url)
    with managed(own_broker.url, 10) as broker:
        for number in range(600):
            broker.ask("CREATE", "queue", f"many.{number:03}")
    names = [str(record["name"]) for record in records(client, "node", "list")]
    assert names == sorted(names)
    assert len(names) == 600
    assert len(records(client, "node", "list", "--count", "550")) == 550


FAILURES = [
    pytest.param(["node", "show", "none"], 3, b"no queue or topic none", id="nothing there"),
    pytest.param(["node", "create", "$management"], 3, b"no queue or topic", id="no such name"),
    pytest.param(["node", "create", ""], 1, b"an address is not empty", id="no name"),
    pytest.param(["node", "list", "--kind", "x"], 2, b"--kind", id="wrong usage"),
    pytest.param(["connection", "show", "0"], 3, b"no connection 0", id="no connection"),
]


@pytest.mark.parametrize(("arguments", "status", "told"), FAILURES)
def test_a_failure_has_its_status_and_one_line(
    client: Client, arguments: list[str], status: int, told: bytes
) -> None:
    done = client.run(*arguments)
    assert (done.returncode, done.stdout) == (status, b"")
    assert told in done.stderr
    if status != 2:
        assert done.stderr.startswith(b"jms-broker: ")
        assert done.stderr.count(b"\n") == 1


def test_what_exists_is_not_created(client: Client, address: str) -> None:
    client.prints("node", "create", address)
    done = client.run("node", "create", address)
    assert (done.returncode, done.stderr) == (
        1,
        f"jms-broker: there is a queue {address}\n".encode(),
    )


def test_no_broker_at_all() -> None:
    done = Client("amqp://127.0.0.1:1").run("node", "list")
    assert done.returncode == 5
    assert done.stderr.startswith(b"jms-broker: amqp://127.0.0.1:1: ")


# -- messages


def test_messages_are_listed_shown_moved_and_deleted(client: Client, address: str) -> None:
    client.prints("send", address, "a", "b", "c")
    other = f"{address}.other"
    client.prints("node", "create", other)
    first, second, third = (
        str(each["identity"]) for each in records(client, "message", "list", address)
    )
    (shown,) = records(client, "message", "show", address, first)
    assert (shown["body"], shown["body_kind"], shown["durable"]) == ("a", "text", True)
    assert client.prints("message", "move", address, other, second) == b"moved 1\n"
    assert client.prints("message", "delete", address, first) == b"deleted 1\n"
    assert client.prints("browse", address) == b"c\n"
    assert client.prints("browse", other) == b"b\n"
    gone = client.run("message", "delete", address, first, third)
    assert (gone.returncode, gone.stdout) == (3, b"deleted 1\n")
    assert first.encode() in gone.stderr


def test_messages_are_counted_and_copied(client: Client, address: str) -> None:
    lines = b"".join(b"%d\n" % number for number in range(1200))
    client.prints("send", address, typed=lines)
    other = f"{address}.other"
    client.prints("node", "create", other)
    choice = ("--all", "--dry-run")
    assert client.prints("message", "copy", address, other, *choice) == b"would copy 1200\n"
    assert client.prints("message", "delete", address, *choice) == b"would delete 1200\n"
    retried = client.prints("message", "retry", address, *choice, "--json")
    assert json.loads(retried) == {"would_retry": 0, "would_stay": 1200}
    none = ("--selector", "JMSPriority = 9", "--dry-run")
    assert client.prints("message", "move", address, other, *none) == b"would move 0\n"
    assert client.run("message", "delete", address, "1", "--dry-run").returncode == 2
    assert client.prints("message", "copy", address, other, "--all") == b"copied 1200\n"
    counts = [
        json.loads(client.prints("node", "show", name, "--json"))["messages"]
        for name in (address, other)
    ]
    assert counts == [1200, 1200]


def test_a_whole_queue_is_moved_and_cut_short_in_the_list(client: Client, address: str) -> None:
    lines = b"".join(b"%d\n" % number for number in range(2500))
    client.prints("send", address, typed=lines)
    done = client.run("message", "list", address, "--json")
    assert len(done.stdout.splitlines()) == 100
    assert b"there are more than 100" in done.stderr
    assert len(records(client, "message", "list", address, "--count", "9999")) == 2500
    other = f"{address}.other"
    client.prints("node", "create", other)
    assert client.prints("message", "move", address, other, "--all") == b"moved 2500\n"
    assert client.prints("browse", other) == lines


def test_a_selector_says_which_messages(client: Client, address: str) -> None:
    client.prints("send", address, "a")
    wanted = ("--selector", "JMSPriority > 4")
    assert records(client, "message", "list", address, *wanted) == []
    assert client.prints("message", "delete", address, *wanted) == b"deleted 0\n"
    wrong = client.run("message", "list", address, "--selector", "a =")
    assert (wrong.returncode, wrong.stdout) == (1, b"")


def test_dead_letters_are_sent_back(own_broker: BrokerProcess, address: str) -> None:
    from proton.utils import BlockingConnection

    client = Client(own_broker.url)
    client.prints("send", address, "a")
    connection = BlockingConnection(own_broker.url)
    receiver = connection.create_receiver(address)
    receiver.receive(timeout=SECONDS)
    receiver.reject()
    connection.close()
    assert len(records(client, "message", "list", "DLQ")) == 1
    assert client.prints("message", "retry", "DLQ", "--all") == b"moved 1\n"
    assert client.prints("browse", address) == b"a\n"


def test_a_scheduled_message_is_delivered_early_or_cancelled(client: Client, address: str) -> None:
    from proton import Message, symbol, timestamp
    from proton.utils import BlockingConnection

    later = {symbol("x-opt-delivery-time"): timestamp(2**42)}
    connection = BlockingConnection(client.url)
    connection.create_sender(address).send(Message(body="x", annotations=later))
    connection.close()
    (scheduled,) = records(client, "message", "list", address, "--scheduled")
    assert scheduled["deliver_at"] == 2**42
    identity = str(scheduled["identity"])
    assert client.prints("message", "deliver", address, identity) == b"delivered 1\n"
    assert client.prints("receive", address, "--count", "1") == b"x\n"
    connection = BlockingConnection(client.url)
    connection.create_sender(address).send(Message(body="y", annotations=later))
    connection.close()
    (scheduled,) = records(client, "message", "list", address, "--scheduled")
    identity = str(scheduled["identity"])
    assert client.prints("message", "cancel", address, identity) == b"cancelled 1\n"
    assert records(client, "message", "list", address, "--scheduled") == []


@pytest.mark.parametrize("command", ["move", "delete", "retry"])
def test_which_messages_must_be_said(client: Client, command: str, address: str) -> None:
    to = ["other"] if command == "move" else []
    done = client.run("message", command, address, *to)
    assert done.returncode == 2
    assert b"--selector, or --all" in done.stderr


# -- subscriptions


def test_a_subscription_is_listed_explained_and_ended(own_broker: BrokerProcess) -> None:
    from proton.reactor import DurableSubscription
    from proton.utils import BlockingConnection

    from broker.cli.client import Capabilities

    client = Client(own_broker.url)
    connection = BlockingConnection(own_broker.url)
    options = [DurableSubscription(), Capabilities("topic")]
    connection.create_receiver("t", name="news", options=options)
    (record,) = records(client, "subscription", "list")
    assert (record["name"], record["address"], record["consumers"]) == ("news", "t", 1)
    identity = str(record["identity"])
    (shown,) = records(client, "subscription", "show", "news")
    assert shown["identity"] == identity
    used = client.run("subscription", "delete", identity)
    assert (used.returncode, b"has 1 consumers" in used.stderr) == (1, True)
    container = str(record["container_id"])
    (told,) = records(client, "explain", "--client-id", container, "--name", "news")
    assert (told["row"], told["refusal"]) == ("SUB-09", "amqp:resource-locked")
    assert client.prints("subscription", "delete", identity, "--force")
    connection.close()
    assert records(client, "subscription", "list") == []


def test_what_an_attach_would_meet(client: Client, address: str) -> None:
    (told,) = records(client, "explain", address, "--kind", "topic", "--durable", "--name", "n")
    assert (told["row"], told["refusal"]) == ("SUB-02", None)
    assert told["node"] == f"the topic {address}, which is created"
    assert b"SUB-02" in client.prints("explain", address, "--kind", "topic", "--durable")
    assert records(client, "node", "list", address) == []


# -- connections


def test_a_connection_is_shown_with_its_links_and_closed(
    own_broker: BrokerProcess, address: str
) -> None:
    client = Client(own_broker.url)
    with client.started("receive", address, "--create") as receiver:
        client.prints("send", address, "a")
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == b"a\n"
        # the other one belongs to the command that lists them
        (listed,) = [each for each in records(client, "connection", "list") if each["links"] == 1]
        identity = str(listed["identity"])
        (shown,) = records(client, "connection", "show", identity)
        (link,) = links_of(shown)
        assert (link["address"], link["role"]) == (address, "receiver")
        client.prints("connection", "close", identity, "--reason", "enough")
        assert receiver.wait(timeout=SECONDS) == 1
        assert receiver.stderr is not None
        assert b"enough" in receiver.stderr.read()


def links_of(record: dict[str, object]) -> list[dict[str, object]]:
    links = record["links"]
    assert isinstance(links, list)
    return links


# -- who may


def test_the_first_user_of_the_settings_may(strict_broker: Broker) -> None:
    client = Client(strict_broker.url)
    assert client.prints("node", "list", "none.*", "--user", USER, "--password", PASSWORD)
    asked = client.run("node", "list", "none.*", "--user", USER, typed=f"{PASSWORD}\n".encode())
    assert asked.returncode == 0


def test_users_of_the_file_may_where_they_are_marked(tmp_path: Path) -> None:
    users = {"JMS_BROKER_CONFIG": str(tmp_path / "broker.toml")}
    (tmp_path / "broker.toml").write_text(f'users_file = "{tmp_path / "users"}"\n')
    setting_up = Client("")
    setting_up.environment = environment(**users)
    for name, flags in (("root", ["--administrator"]), ("bob", [])):
        setting_up.prints("user", "add", name, "--password-stdin", *flags, typed=b"sesame\n")
    assert setting_up.lists_users() == [
        'bob ["application"] no yes file',
        'root ["admin"] yes yes file',
    ]
    broker = BrokerProcess(tmp_path, settings=f'users_file = "{tmp_path / "users"}"\n')
    try:
        client = Client(broker.url)
        client.prints("node", "create", "q", "--user", "root", "--password", "sesame")
        for arguments in (["node", "list"], ["node", "purge", "q"], ["connection", "list"]):
            done = client.run(*arguments, "--user", "bob", "--password", "sesame")
            assert done.returncode == 4, os.fsdecode(done.stderr)
            assert b"not allowed to" in done.stderr
        wrong = client.run("node", "list", "--user", "root", "--password", "open")
        assert wrong.returncode == 4
    finally:
        broker.stop()
