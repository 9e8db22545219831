"""`jms-broker` as typed, against a running broker: send, receive, browse, and how they fail."""

from __future__ import annotations

import json
import os
import pty
import signal
from pathlib import Path

import pytest

from tests.interop.broker_process import PASSWORD, USER, Broker, BrokerProcess
from tests.interop.typed import SECONDS, Client, read_terminal

ATTEMPTS = 100


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker.url)


@pytest.fixture
def strict(strict_broker: Broker) -> str:
    """Return the address of a broker that wants a password, without amqp://."""
    return strict_broker.url.removeprefix("amqp://")


def test_a_message_goes_in_and_comes_out(client: Client, address: str) -> None:
    assert client.prints("send", address, "world") == b"sent 1\n"
    assert client.prints("receive", address, "--count", "1") == b"world\n"


def test_messages_come_out_in_order_and_only_as_many_as_asked_for(
    client: Client, address: str
) -> None:
    client.prints("send", address, "a", "b", "c")
    assert client.prints("receive", address, "--count", "2") == b"a\nb\n"
    assert client.prints("browse", address) == b"c\n"


def test_every_line_of_standard_input_is_a_message(client: Client, address: str) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(2500))
    assert client.prints("send", address, typed=lines) == b"sent 2500\n"
    assert client.prints("browse", address) == lines
    assert client.prints("receive", address, "--count", "2500") == lines


def test_a_line_is_sent_while_the_next_is_awaited(client: Client, address: str) -> None:
    with client.started("send", address) as sender:
        assert sender.stdin is not None
        sender.stdin.write(b"first\n")
        sender.stdin.flush()
        # `receive` may attach before the sender's link has created the queue.
        first = client.prints("receive", address, "--create", "--count", "1")
        assert first == b"first\n"
        sender.stdin.write(b"second\n")
        output, _ = sender.communicate(timeout=SECONDS)
    assert (sender.returncode, output) == (0, b"sent 2\n")
    assert client.prints("receive", address, "--count", "1") == b"second\n"


def test_files_are_messages_of_text_or_bytes(client: Client, address: str, tmp_path: Path) -> None:
    text, binary = tmp_path / "text", tmp_path / "binary"
    text.write_text("two\nlines")
    binary.write_bytes(b"\xff\x00")
    client.prints("send", address, "--file", str(text), "--file", str(binary))
    output = client.prints("receive", address, "--count", "2", "--json")
    bodies = [json.loads(line)["body"] for line in output.splitlines()]
    assert bodies == ["two\nlines", {"base64": "/wA="}]


UNREADABLE = [
    pytest.param([], b"a\nb\n\xff\nc\n", b"line 3 of standard input is not UTF-8", id="a line"),
    pytest.param(["a", "b", b"\xff"], b"", b"the text '\\udcff' is not UTF-8", id="a text"),
    pytest.param(["a", "b", "--file", "/none"], b"", b"/none: No such file", id="a file"),
]


@pytest.mark.parametrize(("arguments", "typed", "told"), UNREADABLE)
def test_what_cannot_be_read_ends_a_send_that_tells_how_many_were_accepted(
    client: Client, address: str, arguments: list[str | bytes], typed: bytes, told: bytes
) -> None:
    words = [os.fsdecode(each) for each in arguments]
    done = client.run("send", address, *words, typed=typed)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"jms-broker: after 2 accepted: " + told)
    assert client.prints("browse", address) == b"a\nb\n"


def test_count_sends_everything_so_many_times(client: Client, address: str) -> None:
    assert client.prints("send", address, "a", "b", "--count", "2", "--json") == b'{"sent": 4}\n'
    assert client.prints("browse", address) == b"a\nb\na\nb\n"


def test_browsing_takes_nothing(client: Client, address: str) -> None:
    client.prints("send", address, "a", "b")
    assert client.prints("browse", address, "--count", "1") == b"a\n"
    for _ in range(2):
        assert client.prints("browse", address) == b"a\nb\n"


def test_browsing_an_empty_queue_ends(client: Client, address: str) -> None:
    client.prints("node", "create", address)
    assert client.prints("browse", address) == b""


def test_json_tells_what_a_message_says_of_itself(client: Client, address: str) -> None:
    client.prints("send", address, "hello")
    facts = json.loads(client.prints("browse", address, "--json"))
    assert facts["body"] == "hello"
    assert facts["durable"] is True
    assert facts["id"].startswith("ID:")
    assert facts["delivery_count"] == 0


@pytest.mark.requirement("DST-01")
def test_a_queue_and_a_topic_of_one_name_are_two(client: Client, address: str) -> None:
    client.prints("send", address, "for the queue", "--capability", "queue")
    one_of_the_topic = ("--capability", "topic", "--create", "--count", "1")
    with client.started("receive", address, *one_of_the_topic) as subscriber:
        # A message that is published before the subscription exists reaches no subscriber.
        for _ in range(ATTEMPTS):
            if subscriber.poll() is not None:
                break
            client.prints("send", address, "for the topic", "--capability", "topic")
        assert subscriber.communicate()[0] == b"for the topic\n"
    assert client.prints("browse", address, "--capability", "queue") == b"for the queue\n"


def test_a_message_that_does_not_come_is_an_error(client: Client, address: str) -> None:
    client.prints("node", "create", address)
    done = client.run("receive", address, "--count", "1", "--timeout", "0.2")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"jms-broker: received 0 of 1\n"


def test_without_a_count_a_timeout_just_ends(client: Client, address: str) -> None:
    client.prints("send", address, "a")
    assert client.prints("receive", address, "--timeout", "0.2") == b"a\n"


def test_what_nobody_reads_stays_in_the_queue(client: Client, address: str) -> None:
    client.prints("send", address, "x" * 1000, "--count", "300")
    with client.started("receive", address) as receiver:
        assert receiver.stdout is not None
        first = receiver.stdout.readline()
        receiver.stdout.close()
        assert receiver.wait(timeout=SECONDS) == 1
    assert first == b"x" * 1000 + b"\n"
    assert 0 < len(client.prints("browse", address).splitlines()) < 300


@pytest.mark.parametrize(
    "command", [["node", "list"], ["browse", "ADDRESS"], ["receive", "ADDRESS", "--count", "1"]]
)
def test_output_that_cannot_be_written_is_not_taken_for_an_error_of_the_broker(
    client: Client, address: str, command: list[str]
) -> None:
    client.prints("send", address, "a")
    arguments = [address if each == "ADDRESS" else each for each in command]
    with (
        Path("/dev/full").open("wb") as full,
        client.started(*arguments, stdout=full.fileno()) as writer,
    ):
        _, errors = writer.communicate(timeout=SECONDS)
    assert errors == b"jms-broker: standard output: No space left on device\n"
    assert writer.returncode == 1
    reading, writing = os.pipe()
    os.close(reading)
    with client.started(*arguments, stdout=writing) as writer:
        os.close(writing)
        _, errors = writer.communicate(timeout=SECONDS)
    assert (writer.returncode, errors) == (1, b"")


def test_an_interrupt_ends_quietly(client: Client, address: str) -> None:
    client.prints("send", address, "a")
    with client.started("receive", address) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == b"a\n"
        receiver.send_signal(signal.SIGINT)
        _, errors = receiver.communicate(timeout=SECONDS)
    assert (receiver.returncode, errors) == (130, b"")


def test_a_terminal_sees_progress_and_a_pipe_does_not(client: Client, address: str) -> None:
    ours, theirs = pty.openpty()
    with client.started("send", address, "a", "--count", "5", stderr=theirs) as sender:
        os.close(theirs)
        shown = b""
        while chunk := read_terminal(ours):
            shown += chunk
        os.close(ours)
        assert sender.communicate(timeout=SECONDS)[0] == b"sent 5\n"
    assert b"sent" in shown


def test_a_password_lets_in(strict: str, address: str) -> None:
    user = Client(f"amqp://{USER}:{PASSWORD}@{strict}")
    user.prints("send", address, "hello")
    assert user.prints("receive", address, "--count", "1") == b"hello\n"


def test_a_wrong_password_is_told_and_not_shown(strict: str, address: str) -> None:
    done = Client(f"amqp://{USER}:wr0ng@{strict}").run("send", address, "x")
    assert done.returncode == 4
    assert b"unauthorized-access" in done.stderr
    assert b"wr0ng" not in done.stderr


def test_a_stranger_is_refused(strict: str, address: str) -> None:
    done = Client(f"amqp://{strict}").run("send", address, "x")
    assert done.returncode == 4
    assert b"Traceback" not in done.stderr


FAILURES = [
    pytest.param(["send", "closed.a", "x"], 3, b"amqp:not-found", id="nothing to send to"),
    pytest.param(["receive", "none"], 3, b"no queue or topic 'none'", id="nothing to receive"),
    pytest.param(["browse", "none"], 3, b"no queue or topic 'none'", id="nothing to browse"),
    pytest.param(
        ["receive", "none", "--capability", "topic"], 3, b"no topic none", id="no such topic"
    ),
    pytest.param(
        ["receive", "closed.a", "--create"], 3, b"may not be created", id="not to be created"
    ),
    pytest.param(["send", "a", "x", "--url", "amqp://127.0.0.1:1"], 5, b"refused", id="no broker"),
    pytest.param(["send", "a", "--file", "/none"], 1, b"/none: No such file", id="no file"),
    pytest.param(["send", "a", "--count", "2"], 2, b"only once", id="standard input twice"),
]


@pytest.mark.parametrize(("arguments", "status", "told"), FAILURES)
def test_what_cannot_be_done_is_told_in_a_line(
    strict: str, arguments: list[str], status: int, told: bytes
) -> None:
    done = Client(f"amqp://{USER}:{PASSWORD}@{strict}").run(*arguments)
    assert done.returncode == status
    assert done.stderr.startswith(b"jms-broker: ")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == b""


@pytest.mark.requirement("DST-02")
def test_what_was_looked_for_in_vain_is_not_there_afterwards(client: Client, address: str) -> None:
    for command in ("receive", "browse"):
        assert client.run(command, address).returncode == 3
    assert client.run("node", "show", address).returncode == 3


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["send", "a", "x"], id="send"),
        pytest.param(["receive", "a"], id="receive"),
        pytest.param(["browse", "a"], id="browse"),
        pytest.param(["node", "list"], id="management"),
        pytest.param(["node", "list", "--user", "a", "--password", "b"], id="with a user"),
    ],
)
def test_a_url_that_names_no_broker_is_refused(arguments: list[str]) -> None:
    done = Client("tcp://eve:pw@h").run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    refusal = b"jms-broker: 'tcp://eve:***@h' is no URL of a broker: tcp:// is not AMQP."
    assert done.stderr.startswith(refusal)
    assert done.stderr.count(b"\n") == 1


def test_a_broker_that_stops_is_told(own_broker: BrokerProcess, address: str) -> None:
    client = Client(own_broker.url)
    with client.started("receive", address, "--create") as receiver:
        client.prints("send", address, "a")
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == b"a\n"
        assert own_broker.stop() == 0
        _, errors = receiver.communicate(timeout=SECONDS)
    assert receiver.returncode == 1
    assert b"amqp:connection:forced" in errors
