"""Tokens and the keys that they need: when keys are fetched, and who waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from threading import Event

import pytest

from broker.net.key_source import KeySource
from broker.net.token_logins import (
    FETCH_PAUSE_S,
    PROBLEMS_MAX,
    REFRESH_S,
    RETRY_S,
    WAITING_MAX,
    PendingTokenLogin,
    TokenLogins,
    TokenUnchecked,
    TokenVerdict,
)
from broker.oauth_settings import OauthSettings
from broker.security.token_keys import KEPT_MS, KeysError, TokenKey
from broker.security.tokens import TokenClaims, TokenRefused, UnknownKey
from tests.support.certificates import Authority
from tests.support.clock import SimulatedClock
from tests.support.tokens import AUDIENCE, ISSUER, KeyServer, TokenIssuer, key_server, oauth

pytestmark = pytest.mark.requirement("SEC-07")

PATIENCE_S = 5.0


class RecordingLogin(PendingTokenLogin):
    """A login that records its verdict."""

    def __init__(self) -> None:
        self.verdict: asyncio.Future[TokenVerdict] = asyncio.get_running_loop().create_future()

    def conclude(self, verdict: TokenVerdict) -> None:
        self.verdict.set_result(verdict)


class HeldSource(KeySource):
    """A source that reads only while `go` is set, and counts how often it is read."""

    def __init__(self, settings: OauthSettings) -> None:
        super().__init__(settings)
        self.go = Event()
        self.go.set()
        self.reads = 0

    def read(self) -> list[TokenKey]:
        self.go.wait(PATIENCE_S)
        self.reads += 1
        return super().read()


class TestBench:
    """Tokens of one issuer, whose keys are in a file that a test changes."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.issuer = TokenIssuer()
        self.clock = SimulatedClock()
        self.notices: list[str] = []
        self.noticed = asyncio.Event()
        self.source = HeldSource(oauth(folder, self.issuer))
        self.source.reads = 0
        self.logins = TokenLogins(
            oauth(folder, self.issuer),
            notice=self.notice,
            clock=self.clock,
            source=self.source,
        )
        self.checked = self.source.reads

    def notice(self, text: str) -> None:
        self.notices.append(text)
        self.noticed.set()

    @property
    def fetches(self) -> int:
        """How often the keys were read since the start."""
        return self.source.reads - self.checked

    def token(self, **changed: object) -> str:
        return self.issuer.token(exp=int(self.clock.wall_ms()) // 1000 + 10**6, **changed)

    def reloaded(
        self, issuer: TokenIssuer, folder: Path | None = None, **given: object
    ) -> TokenLogins:
        """Return the tokens of changed settings, as a reload makes them."""
        settings = oauth(folder or self.folder, issuer, **given)
        return TokenLogins(settings, notice=self.notice, clock=self.clock)

    def publish(self) -> None:
        (self.folder / "jwks.json").write_bytes(self.issuer.jwks())

    async def verdict(self, token: str | None = None) -> TokenVerdict:
        pending = RecordingLogin()
        self.logins.ask(self.token() if token is None else token, pending)
        return await asyncio.wait_for(pending.verdict, PATIENCE_S)


@pytest.fixture
async def stopped(tmp_path: Path) -> AsyncIterator[TestBench]:
    """Yield a bench whose logins a test starts."""
    made = TestBench(tmp_path)
    yield made
    made.source.go.set()
    made.logins.stop()


@pytest.fixture
async def bench(stopped: TestBench) -> TestBench:
    """Return a bench that reads its keys for the first time now."""
    stopped.logins.start()
    return stopped


async def test_a_token_waits_for_the_first_keys(bench: TestBench) -> None:
    assert isinstance(await bench.verdict(), TokenClaims)
    assert isinstance(await bench.verdict(), TokenClaims)
    assert bench.fetches == 1


async def test_a_wrong_token_waits_for_nothing(bench: TestBench) -> None:
    assert isinstance(await bench.verdict("a.b.c"), TokenRefused)


async def test_a_new_key_is_fetched_for_its_first_token(bench: TestBench) -> None:
    await bench.verdict()
    bench.issuer.rotate("second")
    bench.publish()
    bench.clock.advance(int(FETCH_PAUSE_S * 1000))
    assert isinstance(await bench.verdict(), TokenClaims)
    assert bench.fetches == 2


async def test_an_old_key_is_kept_for_a_day(bench: TestBench) -> None:
    old = bench.token()
    await bench.verdict(old)
    bench.issuer.rotate("second")
    bench.publish()
    bench.clock.advance(int(FETCH_PAUSE_S * 1000))
    await bench.verdict()
    assert isinstance(await bench.verdict(old), TokenClaims)
    bench.clock.advance(KEPT_MS)
    assert isinstance(await bench.verdict(old), UnknownKey), "it was read again, and is not there"


async def test_unknown_keys_lead_to_few_fetches(bench: TestBench) -> None:
    """Anyone may make up the ids of keys; such a token is tried again, and not counted."""
    await bench.verdict()
    made_up = [bench.issuer.token({"kid": f"k{n}"}) for n in range(20)]
    verdicts = [await bench.verdict(each) for each in made_up]
    assert {type(each) for each in verdicts} == {TokenUnchecked}
    assert bench.fetches == 1
    bench.clock.advance(int(FETCH_PAUSE_S * 1000))
    assert isinstance(await bench.verdict(made_up[0]), UnknownKey), "now it is certain"
    assert bench.fetches == 2


async def test_few_tokens_wait_for_keys(stopped: TestBench) -> None:
    bench = stopped
    bench.source.go.clear()
    bench.logins.start()
    token = bench.token()
    logins = [RecordingLogin() for _ in range(WAITING_MAX + 1)]
    for pending in logins:
        bench.logins.ask(token, pending)
    assert [pending.verdict.done() for pending in logins].count(True) == 1
    assert isinstance(logins[-1].verdict.result(), TokenUnchecked)
    bench.source.go.set()
    verdicts = await asyncio.gather(*(pending.verdict for pending in logins[:-1]))
    assert {type(each) for each in verdicts} == {TokenClaims}


async def test_without_keys_a_token_is_not_judged(stopped: TestBench) -> None:
    """The client tries again later, and the operator is told once."""
    bench = stopped
    (bench.folder / "jwks.json").unlink()
    bench.logins.start()
    token = bench.token()
    for _ in range(2):
        assert isinstance(await bench.verdict(token), TokenUnchecked)
        bench.clock.advance(int(FETCH_PAUSE_S * 1000))
    (notice,) = bench.notices
    assert "the keys of tokens were not read: jwks = " in notice
    bench.publish()
    assert isinstance(await bench.verdict(token), TokenClaims)


async def test_known_keys_are_used_while_the_issuer_cannot_be_reached(bench: TestBench) -> None:
    await bench.verdict()
    (bench.folder / "jwks.json").unlink()
    bench.logins.look()
    await asyncio.wait_for(bench.noticed.wait(), PATIENCE_S)
    assert isinstance(await bench.verdict(), TokenClaims)


async def test_a_look_forgets_keys_that_are_not_published(bench: TestBench) -> None:
    """An operator whose issuer has lost a key does not wait for a day."""
    stolen = bench.token()
    await bench.verdict(stolen)
    bench.issuer.rotate("second")
    bench.publish()
    bench.logins.look()
    assert isinstance(await bench.verdict(), TokenClaims)
    bench.clock.advance(int(FETCH_PAUSE_S * 1000))
    assert isinstance(await bench.verdict(stolen), UnknownKey)


async def test_the_operator_is_told_once_of_a_scope_that_is_no_rule(bench: TestBench) -> None:
    for scope in ("jms-broker.snd:queue:a", "jms-broker.snd:queue:a", "openid"):
        assert isinstance(await bench.verdict(bench.token(scope=scope)), TokenClaims)
    (notice,) = bench.notices
    assert notice.startswith("a scope in a token of 'ada' gives no right: snd:queue:a: can: 'snd'")
    for number in range(PROBLEMS_MAX):
        await bench.verdict(bench.token(scope=f"jms-broker.snd:queue:{number}"))
    assert len(bench.notices) == PROBLEMS_MAX


async def test_other_settings_judge_the_next_token(bench: TestBench) -> None:
    token = bench.token(aud="web")
    assert isinstance(await bench.verdict(token), TokenRefused)
    bench.logins.adopt(bench.reloaded(bench.issuer, audience="web"))
    assert isinstance(await bench.verdict(token), TokenClaims)
    assert isinstance(await bench.verdict(), TokenRefused)


async def test_keys_of_another_place_are_not_used_any_more(bench: TestBench) -> None:
    """A former issuer could sign tokens in the name of the new one."""
    former = bench.token()
    assert isinstance(await bench.verdict(former), TokenClaims)
    place = bench.folder / "other"
    place.mkdir()
    other = TokenIssuer(kid="other")
    bench.logins.adopt(bench.reloaded(other, place))
    verdict = await bench.verdict(other.token(exp=int(bench.clock.wall_ms()) // 1000 + 60))
    assert isinstance(verdict, TokenClaims)
    bench.clock.advance(int(FETCH_PAUSE_S * 1000))
    assert isinstance(await bench.verdict(former), UnknownKey)


async def test_keys_that_arrive_from_the_former_place_are_not_used(stopped: TestBench) -> None:
    bench = stopped
    bench.source.go.clear()
    bench.logins.start()
    place = bench.folder / "other"
    place.mkdir()
    bench.logins.adopt(bench.reloaded(TokenIssuer(kid="other"), place))
    bench.source.go.set()
    assert isinstance(await bench.verdict(), UnknownKey)


async def test_tokens_that_wait_are_told_of_the_end(stopped: TestBench) -> None:
    bench = stopped
    bench.source.go.clear()
    bench.logins.start()
    pending = RecordingLogin()
    bench.logins.ask(bench.token(), pending)
    bench.logins.stop()
    assert isinstance(pending.verdict.result(), TokenUnchecked)
    bench.source.go.set()


async def test_keys_are_read_regularly(stopped: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = stopped
    waits: list[float] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def recorded(delay: float, *args: object) -> asyncio.TimerHandle:
        waits.append(delay)
        return call_later(delay, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_later", recorded)
    bench.logins.start()
    await bench.verdict()
    assert REFRESH_S in waits
    (bench.folder / "jwks.json").unlink()
    bench.logins.look()
    await asyncio.wait_for(bench.noticed.wait(), PATIENCE_S)
    assert RETRY_S in waits


class BrokenSource(KeySource):
    """A source with a bug."""

    def check(self) -> None:
        """Find nothing wrong."""

    def read(self) -> list[TokenKey]:
        raise ZeroDivisionError


async def test_a_bug_of_a_fetch_is_told_and_does_not_end_the_fetches(tmp_path: Path) -> None:
    notices: list[str] = []
    settings = oauth(tmp_path, TokenIssuer())
    logins = TokenLogins(settings, notice=notices.append, source=BrokenSource(settings))
    logins.start()
    pending = RecordingLogin()
    logins.ask(TokenIssuer().token(), pending)
    assert isinstance(await asyncio.wait_for(pending.verdict, PATIENCE_S), TokenUnchecked)
    assert "ZeroDivisionError" in notices[0]
    logins.stop()


@pytest.fixture
def server() -> Iterator[KeyServer]:
    with key_server(TokenIssuer(), AUTHORITY) as running:
        yield running


AUTHORITY = Authority()


async def test_keys_come_from_a_server(server: KeyServer, tmp_path: Path) -> None:
    settings = OauthSettings(
        issuer=ISSUER, audience=AUDIENCE, jwks=server.url, jwks_ca=AUTHORITY.write(tmp_path)
    )
    logins = TokenLogins(settings, notice=pytest.fail)
    logins.start()
    pending = RecordingLogin()
    logins.ask(server.issuer.token(), pending)
    assert isinstance(await asyncio.wait_for(pending.verdict, PATIENCE_S), TokenClaims)
    logins.stop()


def test_a_file_without_keys_stops_the_start(tmp_path: Path) -> None:
    settings = oauth(tmp_path, TokenIssuer())
    (tmp_path / "jwks.json").write_text("{}")
    with pytest.raises(ValueError, match="no JWK set"):
        TokenLogins(settings, notice=pytest.fail)
    with pytest.raises(KeysError):
        KeySource(settings).read()
