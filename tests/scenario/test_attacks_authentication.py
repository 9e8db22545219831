"""Attack classes A1 to A6 (docs/design/hostile-input.md), each beside a healthy client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.limits import BUFFER_BEFORE_OPEN, FRAME_BEFORE_OPEN
from broker.amqp.performatives import Close, Open
from broker.amqp.sasl import ANONYMOUS, PLAIN
from broker.amqp.sasl_frames import (
    SASL_AUTH,
    SASL_OK,
    SASL_SYS_TEMP,
    SaslChallenge,
    SaslInit,
    SaslOutcome,
    SaslResponse,
)
from broker.app import App
from broker.security.scram_verifier import ScramHash
from broker.security.users import Users
from broker.settings import MEMORY, given_settings
from tests.support.broker import Broker, Doorman
from tests.support.frames import frame, opening, sasl_frame
from tests.support.healthy import NoHarm
from tests.support.scram_client import FormulaClient
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import until
from tests.unit.net.test_connection_admission import connect_silent
from tests.unit.net.test_login import attempt

USER, PASSWORD = "ada", "engine"
LOGIN: Final = ("PLAIN", f"\0{USER}\0{PASSWORD}".encode())
HEALTHY: Final = "127.0.0.9"
"""The address of the healthy client, from which no attack comes."""

ADA: Final = SaslInit(mechanism=PLAIN, initial_response=LOGIN[1])
WRONG: Final = SaslInit(mechanism=PLAIN, initial_response=b"\0ada\0guess")


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Users:
    made = Users(tmp_path_factory.mktemp("users") / "users")
    made.add(USER, PASSWORD)
    return made


@asynccontextmanager
async def running(users: Users, **given: object) -> AsyncIterator[App]:
    app = App(given_settings(port=0, users_file=users.file, store=MEMORY, **given))
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


def dialling(app: App, port: int = 0) -> Callable[[], SocketClient]:
    """Return what makes the connections of the healthy client."""
    return lambda: SocketClient(port or app.port, local=HEALTHY)


def guarded(*, slow: bool = False) -> tuple[Broker, Doorman]:
    """Return a broker that only `ada` may enter."""
    doorman = Doorman({USER: PASSWORD}, anonymous=False, slow=slow)
    return Broker(authenticator=doorman), doorman


# -- A1


SLOWLY: Final = [
    pytest.param(b"", b"", id="nothing"),
    pytest.param(b"", SASL_HEADER + sasl_frame(ADA), id="a header"),
    pytest.param(SASL_HEADER, sasl_frame(ADA), id="a login"),
    pytest.param(SASL_HEADER + sasl_frame(ADA) + AMQP_HEADER, opening("c" * 99)[8:], id="an open"),
]


@pytest.mark.attack("A1")
@pytest.mark.parametrize(("begun", "slowly"), SLOWLY)
def test_a_byte_in_a_second_does_not_move_the_deadline(
    no_harm: NoHarm, begun: bytes, slowly: bytes
) -> None:
    """A1: the connection ends after ten seconds, whatever has arrived."""
    broker, _ = guarded()
    with no_harm.beside(broker) as healthy:
        attackers = [broker.dial() for _ in range(20)]
        for second in range(10):
            for each in attackers:
                assert not each.is_closed()
                each.send_bytes((begun if second == 0 else b"") + slowly[second : second + 1])
            broker.advance(1000)
            healthy.exchange()
        assert all(each.is_closed() or isinstance(each.bodies()[-1], Close) for each in attackers)
        assert broker.container.peer_count() == 1


@pytest.mark.attack("A1")
async def test_silent_connections_leave_room_for_a_login(no_harm: NoHarm, users: Users) -> None:
    """A1: 60 from six addresses, where 50 may be without a login."""
    sources = [f"127.0.{1 + number % 6}.1" for number in range(60)]
    async with (
        running(users, unauthenticated_max=50) as app,
        no_harm.beside_sockets(dialling(app), LOGIN) as healthy,
    ):
        with ExitStack() as stack:
            await connect_silent(app, sources, stack)
            await until(lambda: app.listeners.admission.unauthenticated() == 50)
            await healthy.newcomer()
            await healthy.exchange()
            assert app.stats.connections_over_limit >= 10
        await until(lambda: app.listeners.admission.unauthenticated() == 0)


# -- A2


BEFORE_LOGIN: Final = [
    # input that is sent first, and then again and again
    pytest.param(SASL_HEADER + sasl_frame(ADA), bytes(777), id="input behind an init"),
    pytest.param(SASL_HEADER + sasl_frame(ADA), opening("c" * 8000), id="opens behind an init"),
    pytest.param(b"", SASL_HEADER, id="headers"),
    pytest.param(SASL_HEADER + b"\xff\xff\xff\xff\x02\x01\x00\x00", bytes(777), id="4 GiB"),
    pytest.param(
        SASL_HEADER + (int(FRAME_BEFORE_OPEN) + 1).to_bytes(4) + b"\x02\x01\x00\x00",
        bytes(777),
        id="a frame of one byte too much",
    ),
    pytest.param(SASL_HEADER, sasl_frame(SaslResponse(b"x" * 4000)), id="responses"),
]


@pytest.mark.attack("A2")
@pytest.mark.parametrize(("first", "again"), BEFORE_LOGIN)
def test_a_client_without_a_login_fills_no_memory(
    no_harm: NoHarm, first: bytes, again: bytes
) -> None:
    """A2: the check of the password takes as long as the test lets it."""
    broker, doorman = guarded()
    with no_harm.beside(broker) as healthy:
        doorman.slow = True
        for _ in range(20):
            attacker = broker.dial()
            attacker.send_bytes(first)
            sent = 0
            while not attacker.is_closed():
                attacker.send_bytes(again)
                sent += len(again)
                assert sent <= BUFFER_BEFORE_OPEN + len(again)
            healthy.exchange()
        assert broker.container.peer_count() == 1


# -- A3


AROUND: Final = [
    pytest.param(opening(), id="no SASL"),
    pytest.param(SASL_HEADER + opening(), id="an open instead of the init"),
    pytest.param(SASL_HEADER + frame(Open(container_id="x")), id="an open without a header"),
    pytest.param(SASL_HEADER + sasl_frame(WRONG) + opening(), id="an open behind a wrong init"),
    pytest.param(SASL_HEADER + sasl_frame(WRONG) + sasl_frame(ADA) + opening(), id="a second init"),
    pytest.param(
        SASL_HEADER + sasl_frame(SaslOutcome(SASL_OK)) + opening(), id="an outcome by the client"
    ),
    pytest.param(
        SASL_HEADER + sasl_frame(SaslResponse(LOGIN[1])) + opening(), id="no challenge was sent"
    ),
    pytest.param(
        SASL_HEADER + sasl_frame(SaslInit(mechanism=ANONYMOUS)) + opening(), id="ANONYMOUS"
    ),
    pytest.param(
        SASL_HEADER + sasl_frame(SaslInit(mechanism="EXTERNAL")) + opening(), id="EXTERNAL"
    ),
    pytest.param(SASL_HEADER * 2 + sasl_frame(ADA) + opening(), id="two headers"),
]


@pytest.mark.attack("A3")
@pytest.mark.parametrize("slow", [False, True], ids=["at once", "while a password is checked"])
@pytest.mark.parametrize("sent", AROUND)
def test_no_frames_lead_around_the_login(no_harm: NoHarm, sent: bytes, slow: bool) -> None:
    """A3: no open is answered, and the connection ends."""
    broker, doorman = guarded()
    with no_harm.beside(broker) as healthy:
        doorman.slow = slow
        attacker = broker.dial()
        attacker.send_bytes(sent)
        healthy.exchange()
        while doorman.waiting:
            assert not attacker.peer.is_open
            doorman.answer()
        assert attacker.is_closed()
        assert not any(isinstance(body, Open) for body in attacker.bodies())
        assert broker.container.peer_count() == 1


# -- A4


GOOD_FIRST: Final = b"n,,n=ada,r=abc"

MALFORMED: Final = (
    # mechanism, initial response, the response to a challenge
    ("PLAIN", b"", b""),
    ("PLAIN", b"\0\0", b""),
    ("PLAIN", b"ada\0engine", b""),
    ("PLAIN", b"\0ada\0engine\0", b""),
    ("PLAIN", b"\0\xff\xfe\0engine", b""),
    ("PLAIN", bytes(8000), b""),
    ("PLAIN", bytes(1024 * 1024), b""),
    ("SCRAM-SHA-256", b"", b""),
    ("SCRAM-SHA-256", b"n,,", b""),
    ("SCRAM-SHA-256", b"\xff" * 100, b""),
    ("SCRAM-SHA-256", b"n,,n=ada,r=", b""),
    ("SCRAM-SHA-256", b"n,,n=ada,r=" + b"x" * 257, b""),
    ("SCRAM-SHA-256", b"n,,m=ext,n=ada,r=abc", b""),
    ("SCRAM-SHA-256", b"n,a=root,n=ada,r=abc", b""),
    ("SCRAM-SHA-256", b"p=tls-unique,,n=ada,r=abc", b""),
    ("SCRAM-SHA-256", GOOD_FIRST, b""),
    ("SCRAM-SHA-256", GOOD_FIRST, b"c=biws,r=abc,p=AAAA"),
    ("SCRAM-SHA-256", GOOD_FIRST, b"c=biws,r=,i=2147483648,p=" + b"A" * 44),
    ("SCRAM-SHA-256", GOOD_FIRST, b"\0" * 3000),
    ("EXTERNAL", b"", b""),
    ("EXTERNAL", b"ada", b""),
    ("OAUTHBEARER", b"n,,\x01auth=Bearer x\x01\x01", b""),
    ("XOAUTH2", b"user=ada\x01auth=Bearer x\x01\x01", b""),
    ("", b"", b""),
)


async def answers(client: SocketClient) -> list[object]:
    """Return what the broker sends until it closes the connection."""
    got: list[object] = []
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        await client.header()
        while True:
            got.append(await client.next())
    return got


@pytest.mark.attack("A4")
async def test_malformed_logins_end_one_connection(no_harm: NoHarm, users: Users) -> None:
    """A4: each comes from an address of its own, as failures delay their source."""
    async with (
        running(users) as app,
        no_harm.beside_sockets(dialling(app), LOGIN) as healthy,
    ):
        for number, (mechanism, first, second) in enumerate(MALFORMED):
            async with SocketClient(app.port, local=f"127.0.1.{number + 1}") as client:
                client.login(mechanism, first)
                client.respond(second)
                client.send_bytes(opening("attacker"))
                codes = [each.code for each in await answers(client) if hasattr(each, "code")]
                assert codes in ([SASL_AUTH], []), (mechanism, first, second)
            await healthy.exchange()
        await healthy.newcomer()
        await until(lambda: app.container.peer_count() == 1)


@pytest.mark.attack("A4")
async def test_the_answer_to_another_challenge_is_refused(no_harm: NoHarm, users: Users) -> None:
    """A4: a listener has recorded a login, and sends the same again."""
    formulas = FormulaClient(ScramHash.SHA_256, USER, PASSWORD)
    recorded: list[bytes] = []
    codes: list[int] = []
    async with (
        running(users) as app,
        no_harm.beside_sockets(dialling(app), LOGIN) as healthy,
    ):
        for number in range(2):
            async with SocketClient(app.port, local=f"127.0.1.{number + 1}") as client:
                client.login("SCRAM-SHA-256", formulas.first())
                await client.header()
                await client.next()
                challenge = await client.next()
                assert isinstance(challenge, SaslChallenge)
                recorded = recorded or [formulas.final(challenge.challenge)]
                client.respond(recorded[0])
                told = await client.next()
                codes.append(SASL_OK if isinstance(told, SaslChallenge) else SASL_AUTH)
            await healthy.exchange()
    assert codes == [SASL_OK, SASL_AUTH]


# -- A5


RUNS: Final = 5
MEASUREMENTS_MAX: Final = 3
"""Measurements of which one must show equal times: a check that is left out shows in each."""

TOLERANCE: Final = 0.2
"""Share by which the times may differ: reliability says 5 %, a busy machine adds noise."""

Check = Callable[[str, str], bool]


def times(check: Check, *cases: tuple[str, str]) -> list[float]:
    """Return the least CPU seconds of a check for each case; the runs alternate.

    A busy machine makes some runs longer, in its caches and as a virtual one, and none shorter.
    """
    took: list[list[float]] = [[] for _ in cases]
    for _ in range(RUNS):
        for index, case in enumerate(cases):
            began_s = time.thread_time()
            assert not check(*case)
            took[index].append(time.thread_time() - began_s)
    return [min(each) for each in took]


def are_equal(took: list[float]) -> bool:
    return max(took) - min(took) < TOLERANCE * max(took)


GUESSES: Final = ((USER, "guess"), ("nobody", "guess"), ("nobody", ""), (USER, ""))


@pytest.mark.attack("A5")
def test_the_time_of_a_check_does_not_tell_whether_there_is_a_user(users: Users) -> None:
    """A5: CPU time of the thread, so that the load of the machine does not count."""
    measured = (times(users.check, *GUESSES) for _ in range(MEASUREMENTS_MAX))
    assert any(are_equal(took) for took in measured)


@pytest.mark.attack("A5")
def test_a_check_that_skips_unknown_users_would_be_found(users: Users) -> None:
    """A5: the control of the test above."""
    assert not are_equal(
        times(lambda user, given: user == USER and users.check(user, given), *GUESSES)
    )


@pytest.mark.attack("A5")
async def test_guesses_delay_no_other_source(no_harm: NoHarm, users: Users) -> None:
    """A5: wrong passwords, unknown users and empty passwords get the same answers."""
    async with (
        running(users, limit_loopback=False) as app,
        no_harm.beside_sockets(dialling(app), LOGIN) as healthy,
    ):
        flood = [asyncio.create_task(attempt(app, f"{n}", "127.0.0.2")) for n in range(40)]
        await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
        await healthy.newcomer()
        await healthy.exchange()
        assert set(await asyncio.gather(*flood)) <= {SASL_AUTH, SASL_SYS_TEMP}
        told = [await refusal_of(app, response) for response in REFUSED_LOGINS]
        assert told == [told[0]] * len(told)


REFUSED_LOGINS: Final = (b"\0ada\0guess", b"\0nobody\0guess", b"\0nobody\0", b"\0ada\0")


async def refusal_of(app: App, response: bytes) -> bytes:
    """Return all bytes with which a login is refused."""
    source = f"127.0.2.{REFUSED_LOGINS.index(response) + 1}"
    async with SocketClient(app.port, local=source) as client:
        client.login("PLAIN", response)
        return await asyncio.wait_for(client.reader.read(), 5)


# -- A6


RULES: Final = """
[[rule]]
id = "ada"
effect = "deny"
who = ["user:ada"]
can = ["connect"]
on = ["connection:*"]
when = { listener = ["amqp", "scram"] }

[[rule]]
id = "bob"
effect = "deny"
who = ["user:bob"]
can = ["connect"]
on = ["connection:*"]
when = { listener = ["inside"] }
"""


async def opens(port: int, login: tuple[str, bytes]) -> bool:
    """Return whether a client that logs in may open a connection."""
    async with SocketClient(port, local="127.0.0.2") as client:
        client.login(*login)
        client.send_bytes(opening("attacker"))
        got = await answers_until(client, Open)
        opened = next((each for each in got if isinstance(each, Open)), None)
        return opened is not None and opened.properties.get(FAILED) is None


FAILED: Final = "amqp:connection-establishment-failed"


async def answers_until(client: SocketClient, kind: type[object]) -> list[object]:
    """Return what the broker sends up to a performative of `kind`, or up to the end."""
    got: list[object] = []
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        await client.header()
        while not isinstance(got[-1] if got else None, kind | SaslOutcome):
            got.append(await client.next())
        await client.header()
        got.append(await client.next())
    return got


@pytest.mark.attack("A6")
async def test_a_user_of_one_listener_is_none_of_another(no_harm: NoHarm, tmp_path: Path) -> None:
    """A6: ada may connect inside alone, bob not there; one listener takes only SCRAM."""
    users = Users(tmp_path / "users")
    users.add(USER, PASSWORD)
    users.add("bob", "tulip")
    (tmp_path / "acl.toml").write_text(RULES)
    listeners = [
        {"name": "inside", "port": 0},
        {"name": "scram", "port": 0, "mechanisms": ["SCRAM-SHA-256"]},
    ]
    given = {"acl_file": tmp_path / "acl.toml", "listener": listeners}
    async with running(users, **given) as app:
        first, inside, scram = (each.port for each in app.listeners.each)
        bob = ("PLAIN", b"\0bob\0tulip")
        async with no_harm.beside_sockets(dialling(app), bob) as healthy:
            assert await opens(inside, LOGIN)
            assert not await opens(first, LOGIN)
            assert not await opens(inside, bob)
            await healthy.exchange()
            assert not await opens(scram, LOGIN), "its mechanism is not taken there"
            assert not await opens(scram, bob)
            await healthy.newcomer()
