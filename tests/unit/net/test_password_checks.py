"""Password checks in threads: their order, shared checks, and answers without a check."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from broker.net.password_checks import (
    AwaitedLogin,
    Check,
    PasswordChecks,
    PasswordVerdict,
    PendingLogin,
    checks_at_once,
    refusal_of,
)
from broker.security.turns import TooManyLogins, Turns

pytestmark = pytest.mark.attack("A5")

RIGHT = "sesame"


class Verifier:
    """Compares passwords after `go` is set, and records its arguments."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.go = threading.Event()

    def __call__(self, user: str, password: str) -> bool:
        self.go.wait(10)
        self.asked.append((user, password))
        if password == "broken":
            raise MemoryError
        return password == RIGHT


class Gone(PendingLogin):
    """A login whose client has hung up; it must not be told a verdict."""

    def is_gone(self) -> bool:
        return True

    def conclude(self, verdict: PasswordVerdict) -> None:
        raise AssertionError(f"told {verdict}")


@pytest.fixture
async def verifier() -> AsyncIterator[Verifier]:
    made = Verifier()
    yield made
    made.go.set()


def login(checks: PasswordChecks, user: str, password: str, source: str = "x") -> AwaitedLogin:
    pending = AwaitedLogin()
    checks.ask(source, user, password, pending=pending)
    return pending


async def told(*logins: AwaitedLogin) -> list[PasswordVerdict]:
    return await asyncio.wait_for(asyncio.gather(*[each.verdict for each in logins]), 10)


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        pytest.param(1, 1, id="one core"),
        pytest.param(2, 1, id="two cores: one for the event loop"),
        pytest.param(3, 2, id="three"),
        pytest.param(64, 2, id="many: 19 MiB each is bounded"),
    ],
)
def test_checks_at_once(cores: int, expected: int) -> None:
    assert checks_at_once(cores) == expected


@pytest.mark.parametrize(
    ("password", "expected"),
    [pytest.param(RIGHT, True, id="right"), pytest.param("x", False, id="wrong")],
)
async def test_the_verdict_is(verifier: Verifier, password: str, expected: bool) -> None:
    verifier.go.set()
    assert await PasswordChecks(verifier).verdict("x", "ada", password) is expected


async def test_a_good_login_waits_for_one_turn_of_each_other_source(verifier: Verifier) -> None:
    checks = PasswordChecks(verifier)
    bad = [login(checks, "eve", f"guess {number}", "flood") for number in range(30)]
    good = login(checks, "ada", RIGHT, "home")
    verifier.go.set()
    assert await told(good) == [PasswordVerdict.RIGHT]
    # after the checks that already ran, and one of the other source
    assert verifier.asked.index(("ada", RIGHT)) <= checks_at_once() + 1
    assert set(await told(*bad)) == {PasswordVerdict.WRONG}


async def test_within_a_source_a_flood_of_one_name_delays_no_other_name(
    verifier: Verifier,
) -> None:
    checks = PasswordChecks(verifier)
    flood = [login(checks, "eve", f"guess {number}") for number in range(400)]
    good = login(checks, "ada", RIGHT)
    verifier.go.set()
    assert await told(good) == [PasswordVerdict.RIGHT]
    assert verifier.asked.index(("ada", RIGHT)) <= checks_at_once() + 1
    verdicts = await told(*flood)
    assert set(verdicts) == {PasswordVerdict.WRONG, PasswordVerdict.UNCHECKED}


async def test_equal_logins_of_a_source_are_one_check(verifier: Verifier) -> None:
    checks = PasswordChecks(verifier)
    login(checks, "eve", "first in the turn")
    login(checks, "eve", "first in the turn, with two at once")
    same = [login(checks, "ada", RIGHT) for _ in range(100)]
    elsewhere = login(checks, "ada", RIGHT, "y")
    verifier.go.set()
    assert await told(*same, elsewhere) == [PasswordVerdict.RIGHT] * 101
    assert verifier.asked.count(("ada", RIGHT)) == 2


async def test_who_loses_their_place_is_told_so(verifier: Verifier) -> None:
    checks = PasswordChecks(verifier, turns=Turns[Check](per_source_max=1))
    running = [login(checks, "eve", f"{number}") for number in range(checks_at_once())]
    displaced = asyncio.create_task(checks.verdict("x", "eve", "displaced"))
    await asyncio.sleep(0)
    last = login(checks, "eve", "last")
    with pytest.raises(TooManyLogins, match=r"^too many logins from x .* try again later$"):
        await displaced
    verifier.go.set()
    assert set(await told(*running, last)) == {PasswordVerdict.WRONG}
    assert ("eve", "displaced") not in verifier.asked


async def test_nothing_is_checked_for_a_client_that_has_gone(verifier: Verifier) -> None:
    checks = PasswordChecks(verifier)
    running = [login(checks, "eve", f"{number}") for number in range(checks_at_once())]
    checks.ask("x", "eve", "gone", pending=Gone())
    last = login(checks, "eve", "last")
    verifier.go.set()
    await told(*running, last)
    assert ("eve", "gone") not in verifier.asked


async def test_a_check_that_fails_is_reported_and_holds_up_nobody(verifier: Verifier) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: reported.append(context["exception"])
    )
    checks = PasswordChecks(verifier)
    broken = login(checks, "ada", "broken")
    later = login(checks, "ada", RIGHT)
    verifier.go.set()
    assert await told(broken, later) == [PasswordVerdict.UNCHECKED, PasswordVerdict.RIGHT]
    assert [type(each) for each in reported] == [MemoryError]


def test_the_refusal_says_what_to_do() -> None:
    assert "try again later" in refusal_of("10.0.0.1")
