"""Logins of a client: the mechanisms that the harness knows, and their answers to challenges."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from broker.amqp.sasl_frames import SASL_SYS_TEMP, SaslInit, SaslOutcome

from .verdict import Failed, Kind, NotApplicable, Options

if TYPE_CHECKING:
    from scramp import ScramClient

ANONYMOUS: Final = "ANONYMOUS"
EXTERNAL: Final = "EXTERNAL"
PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")

WITH_USER: Final = (PLAIN, *SCRAM)
"""The mechanisms of a user with a password; without `--mechanism` the first offered one is used."""

KNOWN: Final = (*WITH_USER, ANONYMOUS, EXTERNAL)

CHALLENGES_MAX: Final = 8
"""Maximum challenges of an exchange that the harness answers; SCRAM has two."""


PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0, 8.0)
"""Seconds before each further try of a login that the broker did not check (sys-temp)."""


async def pause(seconds: float) -> None:
    """Wait until a broker that delays logins after failed ones may check one."""
    await asyncio.sleep(seconds)


class TryLaterError(Exception):
    """The broker has not checked a login (code sys-temp), for example after several wrong ones."""


def check_checked(outcome: SaslOutcome) -> None:
    """Raise TryLaterError if the outcome says nothing about the login."""
    if outcome.code == SASL_SYS_TEMP:
        raise TryLaterError


class Login(ABC):
    """One exchange: its sasl-init, and the responses."""

    def __init__(self, init: SaslInit) -> None:
        self.init: Final = init

    @abstractmethod
    def answer(self, challenge: bytes) -> bytes:
        """Return the response to a challenge; raise Failed if the mechanism has no such one."""

    @abstractmethod
    def check_end(self, additional_data: bytes | None) -> None:
        """Raise Failed if the server has not proved what the mechanism demands with outcome ok."""


class OneStepLogin(Login):
    """A mechanism without challenges: PLAIN, ANONYMOUS, EXTERNAL."""

    def answer(self, challenge: bytes) -> bytes:
        raise Failed(f"no challenge of {self.init.mechanism}", repr(challenge))

    def check_end(self, additional_data: bytes | None) -> None:
        """Accept any end: the server has nothing to prove."""


class ScramLogin(Login):
    """SCRAM of RFC 5802 and RFC 7677, without channel binding."""

    def __init__(self, mechanism: str, options: Options, *, nonce: str | None = None) -> None:
        from scramp import ScramClient

        self._client: Final[ScramClient] = ScramClient(
            [mechanism], options.user, options.password or "", c_nonce=nonce
        )
        self._challenges = 0
        first = self._client.get_client_first().encode()
        super().__init__(
            SaslInit(mechanism=mechanism, initial_response=first, hostname=options.host)
        )

    def answer(self, challenge: bytes) -> bytes:
        from scramp import ScramException

        self._challenges += 1
        try:
            if self._challenges == 1:
                self._client.set_server_first(challenge.decode())
                final: str = self._client.get_client_final()
                return final.encode()
            if self._challenges == 2:
                self._client.set_server_final(challenge.decode())
                return b""
        except (ScramException, UnicodeDecodeError) as error:
            raise Failed(
                f"a challenge of {self.init.mechanism}", f"{challenge!r}: {error}"
            ) from None
        raise Failed("the outcome", f"challenge {self._challenges}: {challenge!r}")

    def check_end(self, additional_data: bytes | None) -> None:
        if self._challenges < 2:
            if additional_data is None:
                raise Failed("the server's proof (v=…) before the outcome ok", "none")
            self.answer(additional_data)


def login_of(options: Options, offered: list[str]) -> Login:
    """Return the login that the options ask for; raise NotApplicable if it is not offered."""
    wanted = options.mechanism
    if wanted is None:
        wanted = _preferred(options, offered)
    if wanted is None or wanted not in offered:
        raise NotApplicable(
            f"the broker offers {', '.join(offered)}, and"
            + (
                f" --mechanism is {wanted}"
                if wanted is not None
                else f" a user is {'' if options.user is not None else 'not '}given"
            ),
            Kind.NOT_OFFERED,
        )
    if wanted in SCRAM:
        return ScramLogin(wanted, options)
    responses = {
        PLAIN: f"\0{options.user}\0{options.password or ''}".encode(),
        ANONYMOUS: b"conformance",
        EXTERNAL: b"",
    }
    return OneStepLogin(
        SaslInit(mechanism=wanted, initial_response=responses[wanted], hostname=options.host)
    )


def _preferred(options: Options, offered: list[str]) -> str | None:
    """Return the mechanism to use without `--mechanism`, None if there is none."""
    usable: tuple[str, ...] = (ANONYMOUS,)
    if options.user is not None:
        usable = WITH_USER
    elif options.shows_certificate:
        usable = (EXTERNAL, ANONYMOUS)
    return next((each for each in usable if each in offered), None)
