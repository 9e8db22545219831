"""`jms-broker healthcheck`: which broker it asks, and which answers count as up."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from librt.strings import BytesWriter
from typer.testing import CliRunner

from broker.amqp.errors import CONNECTION_FORCED
from broker.amqp.frames import (
    AMQP_HEADER,
    EMPTY_FRAME,
    SASL_HEADER,
    put_frame,
    put_sasl_frame,
)
from broker.amqp.performatives import Begin, Close, Error, Open, Performative
from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK, SaslMechanisms, SaslOutcome
from broker.app import App
from broker.cli.application import application
from broker.cli.healthcheck import check, urls_of_settings
from broker.cli.wire import Unhealthy
from broker.compiled import SLOWER, is_compiled
from broker.settings import MEMORY, Settings

PATIENCE_S = 20.0


def sasl(performative: Performative) -> bytes:
    out = BytesWriter()
    put_sasl_frame(out, performative)
    return out.getvalue()


def amqp(performative: Performative) -> bytes:
    out = BytesWriter()
    put_frame(out, 0, performative)
    return out.getvalue()


def offering(*mechanisms: str) -> bytes:
    """Return a broker's first answer."""
    return SASL_HEADER + sasl(SaslMechanisms(list(mechanisms)))


ANYBODY = offering("PLAIN", "ANONYMOUS")
USERS_ONLY = offering("PLAIN")
LET_IN = sasl(SaslOutcome(SASL_OK))
REFUSED = sasl(SaslOutcome(SASL_AUTH))
OPENED = AMQP_HEADER + amqp(Open(container_id="broker"))
CLOSED = amqp(Close())
OPENED_INTERPRETED = AMQP_HEADER + amqp(
    Open(container_id="broker", properties={"build": "interpreted"})
)
OPENED_COMPILED = AMQP_HEADER + amqp(Open(container_id="broker", properties={"build": "compiled"}))
SLOW = f"; it runs {SLOWER}"
FORCED = amqp(Close(error=Error(condition=CONNECTION_FORCED, description="going down")))


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Yield the address of a server that sends `answer` to its one client, whatever it receives."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client, suppress(OSError):  # the client may leave before it has read all
                client.sendall(answer)
                client.shutdown(socket.SHUT_WR)
                while client.recv(4096):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(PATIENCE_S)


UP = [
    pytest.param(ANYBODY + LET_IN + OPENED + CLOSED, "opened and closed a connection", id="it all"),
    pytest.param(
        ANYBODY + LET_IN + OPENED + EMPTY_FRAME + CLOSED,
        "opened and closed a connection",
        id="a heartbeat between",
    ),
    pytest.param(USERS_ONLY, "asks for a password (PLAIN)", id="users only"),
]


@pytest.mark.parametrize(("answer", "expected"), UP)
def test_up(answer: bytes, expected: str) -> None:
    with answering(answer) as place:
        assert check(f"amqp://{place}", PATIENCE_S) == expected


BUILDS = [
    pytest.param(OPENED_INTERPRETED, "compiled", SLOW, id="it says: interpreted"),
    pytest.param(OPENED_COMPILED, "interpreted", "", id="it says: compiled"),
    pytest.param(OPENED, "interpreted", SLOW, id="it says nothing, ours is interpreted"),
    pytest.param(OPENED, "", "", id="nothing is known"),
]


@pytest.mark.parametrize(("opened", "build", "told"), BUILDS)
def test_an_interpreted_broker_is_told(opened: bytes, build: str, told: str) -> None:
    with answering(ANYBODY + LET_IN + opened + CLOSED) as place:
        verdict = check(f"amqp://{place}", PATIENCE_S, build=build)
    assert verdict == f"opened and closed a connection{told}"


def test_the_build_counts_where_a_password_is_wanted_before_the_broker_can_tell() -> None:
    with answering(USERS_ONLY) as place:
        verdict = check(f"amqp://{place}", PATIENCE_S, build="interpreted")
    assert verdict == f"asks for a password (PLAIN){SLOW}"


DOWN = [
    pytest.param(b"", "closed the socket", id="nothing"),
    pytest.param(SASL_HEADER[:5], "closed the socket", id="half a header"),
    pytest.param(b"HTTP/1.1 400 \r\n", "answers b'AMQP\\x03\\x01\\x00\\x00' with", id="HTTP"),
    pytest.param(AMQP_HEADER, "answers b'AMQP\\x03\\x01\\x00\\x00' with", id="no SASL"),
    pytest.param(SASL_HEADER + b"\xff" * 8, "does not speak AMQP 1.0: ", id="a frame of 4 GiB"),
    pytest.param(
        SASL_HEADER + amqp(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)),
        "sent an unexpected frame, descriptor 0x11",
        id="a frame out of place",
    ),
    pytest.param(ANYBODY + REFUSED, "refuses strangers (code 1)", id="no stranger"),
    pytest.param(ANYBODY + LET_IN, "closed the socket", id="no open"),
    pytest.param(
        ANYBODY + LET_IN + AMQP_HEADER + CLOSED, "sent close in place of open", id="close for open"
    ),
    pytest.param(
        ANYBODY + LET_IN + OPENED + FORCED,
        "closed: amqp:connection:forced going down",
        id="closed with an error",
    ),
]


@pytest.mark.parametrize(("answer", "told"), DOWN)
def test_down(answer: bytes, told: str) -> None:
    with answering(answer) as place, pytest.raises(Unhealthy) as verdict:
        check(f"amqp://{place}", PATIENCE_S)
    text = str(verdict.value)
    assert text.startswith(f"{place} {told}")
    assert "\n" not in text


def test_a_user_is_not_tried_without_plain() -> None:
    with answering(offering("SCRAM-SHA-256")) as place, pytest.raises(Unhealthy) as verdict:
        check(f"amqp://alice:sesame@{place}", PATIENCE_S)
    assert str(verdict.value).startswith(f"{place} does not offer PLAIN here (SCRAM-SHA-256): use")


CREDENTIALS = [
    pytest.param("amqp://alice:sesame@", LET_IN + OPENED + CLOSED, "opened", id="let in"),
    pytest.param("amqp://alice:wrong@", REFUSED, "refuses 'alice' (code 1)", id="refused"),
]


@pytest.mark.parametrize(("url", "answer", "told"), CREDENTIALS)
def test_a_user_in_the_address_is_tried(url: str, answer: bytes, told: str) -> None:
    with answering(USERS_ONLY + answer) as place:
        assert told in verdict_on(f"{url}{place}")


def verdict_on(url: str) -> str:
    try:
        return check(url, PATIENCE_S)
    except Unhealthy as verdict:
        return str(verdict)


def test_a_silent_server_is_down_after_the_time_out() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(Unhealthy, match=rf"^{place} did not answer within 0.05 s$"):
            check(f"amqp://{place}", 0.05)


def test_nobody_there_is_down() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(Unhealthy, match=rf"^{place}: Connection refused$"):
        check(f"amqp://{place}", PATIENCE_S)


@pytest.mark.parametrize("url", ["http://localhost", "amqp://", "amqp://a:b"])
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(Unhealthy, match="is no URL of a broker"):
        check(url, PATIENCE_S)


SETTINGS = [
    pytest.param({}, "amqp://127.0.0.1:5672", id="the defaults"),
    pytest.param({"bind": "0.0.0.0", "port": "1"}, "amqp://127.0.0.1:1", id="every address"),
    pytest.param({"bind": "::"}, "amqp://[::1]:5672", id="every address, IPv6"),
    pytest.param({"bind": "192.0.2.1"}, "amqp://192.0.2.1:5672", id="one address"),
    pytest.param({"bind": "::2"}, "amqp://[::2]:5672", id="one address, IPv6"),
]


@pytest.mark.parametrize(("settings", "expected"), SETTINGS)
def test_without_an_address_the_broker_of_these_settings_is_asked(
    settings: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"JMS_BROKER_{name.upper()}", value)
    assert urls_of_settings(None) == [expected]


def test_a_port_that_nobody_knows_is_told(tmp_path: Path) -> None:
    config = tmp_path / "broker.toml"
    config.write_text("port = 0")
    with pytest.raises(Unhealthy, match="--url"):
        urls_of_settings(config)


def test_wrong_settings_are_told_on_one_line(tmp_path: Path) -> None:
    config = tmp_path / "broker.toml"
    config.write_text("prot = 0\nbnid = 1")
    with pytest.raises(Unhealthy) as verdict:
        urls_of_settings(config)
    assert "prot" in str(verdict.value)
    assert "bnid" in str(verdict.value)
    assert "\n" not in str(verdict.value)


def test_the_command_ends_with_0_where_the_broker_is_up() -> None:
    with answering(USERS_ONLY) as place:
        done = CliRunner().invoke(application, ["healthcheck", "--url", f"amqp://{place}"])
    assert (done.exit_code, done.stdout) == (0, "healthy: asks for a password (PLAIN)\n")


def test_the_command_ends_with_1_and_one_line_where_it_is_down() -> None:
    with answering(b"") as place:
        done = CliRunner().invoke(application, ["healthcheck", "--url", f"amqp://{place}"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"jms-broker: {place} closed the socket\n"


async def test_a_running_broker_is_up(tmp_path: Path) -> None:
    app = App(Settings(port=0, users_file=tmp_path / "users", store=MEMORY))
    await app.start()
    try:
        verdict = await asyncio.to_thread(check, app.url(), PATIENCE_S)
    finally:
        await app.stop()
    assert verdict == f"opened and closed a connection{'' if is_compiled() else SLOW}"


def test_without_an_address_the_build_is_that_of_this_installation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with answering(USERS_ONLY) as place:
        monkeypatch.setenv("JMS_BROKER_PORT", place.rpartition(":")[2])
        done = CliRunner().invoke(application, ["healthcheck"])
    slow = "" if is_compiled() else SLOW
    assert done.stdout == f"healthy: asks for a password (PLAIN){slow}\n"


def test_it_needs_neither_proton_nor_settings_where_the_address_is_given() -> None:
    program = """
import sys
import broker.cli.healthcheck
print([name for name in ["proton", "uvloop", "pydantic"] if name in sys.modules])
"""
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.stdout == "[]\n", found.stderr
