"""The possible verdicts on a case: passed, failed, or not applicable."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Verdict(Enum):
    """The verdict on a case: passed, failed, not applicable to this broker, or not run at all.

    Cases are not run if the broker died before, and did not come back.
    """

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"


NAME: Final = "{name}"
"""The place of an address's own name in a template of addresses."""


RESET: Final = "a connection that was reset"


class Failed(Exception):  # noqa: N818 - a verdict, not an error of the harness
    """The broker broke the rule: `expected` and `got` in words."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected = expected
        self.got = got

    @property
    def is_end(self) -> bool:
        """True if the broker closed the socket."""
        return self.got.startswith(("the end of the stream", RESET))

    @property
    def is_silence(self) -> bool:
        """True if no frame arrived in time."""
        return self.got.startswith("nothing for ")


class Kind(Enum):
    """The kind of reason for which a case is not applicable.

    OPTION_MISSING: the user gave no option that the case needs. NOT_OFFERED: the broker refuses the
    feature, or does not offer it. DID_NOT_HAPPEN: the situation that the rule is about did not
    arise. IGNORED: the broker took what asks for a feature of JMS, and ignored it; no specification
    forbids that, but applications of JMS notice. CLIENT: the client of the JMS suite breaks the
    rule itself, whatever the broker does.
    """

    OPTION_MISSING = "option missing"
    NOT_OFFERED = "not offered"
    DID_NOT_HAPPEN = "did not happen"
    IGNORED = "ignored"
    CLIENT = "client"


class NotApplicable(Exception):  # noqa: N818 - as for Failed
    """The case cannot be tried on this broker, because of `reason`, which is of a `kind`."""

    def __init__(self, reason: str, kind: Kind) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


@dataclass(frozen=True)
class Options:
    """The broker's address, and what a user told the harness about the broker.

    `address` is an existing queue; if it is None, every case uses an address of its own, which the
    broker creates with the first attach. `missing_address` is one that it refuses to create.
    `blocking_address` and `rejecting_address` are queues of less than a thousand messages, which
    the cases empty: once full, the former gives no credit, the latter rejects messages.
    `dead_letter_address` is QUEUE=DEAD_LETTERS: a queue, and one like the latter to which messages
    are moved that consumers of the former reject. `deduplicating_address` is a queue that discards
    messages whose message-id it has had. `context`
    is the TLS of connections, None for none; `shows_certificate` is whether it has a certificate.
    `mechanism` is the only one to log in with. `websocket` is the path of AMQP within WebSocket,
    None for AMQP on the socket itself. With `strict_jms` a case fails where the broker ignores a
    feature of JMS that no specification demands (`Kind.IGNORED`). `restart` is a shell command that
    restarts the broker. `queue_template` and `topic_template` are the addresses that the broker
    gives to a queue and a topic called `{name}`.
    """

    host: str
    port: int
    user: str | None = None
    password: str | None = None
    address: str | None = None
    missing_address: str | None = None
    blocking_address: str | None = None
    rejecting_address: str | None = None
    dead_letter_address: str | None = None
    deduplicating_address: str | None = None
    timeout_s: float = 5.0
    context: ssl.SSLContext | None = None
    shows_certificate: bool = False
    mechanism: str | None = None
    websocket: str | None = None
    strict_jms: bool = False
    restart: str | None = None
    queue_template: str = NAME
    topic_template: str = NAME

    def queue_address(self, name: str) -> str:
        """Return the address of a queue."""
        return self.queue_template.replace(NAME, name)

    def topic_address(self, name: str) -> str:
        """Return the address of a topic."""
        return self.topic_template.replace(NAME, name)


def require(claim: object, expected: str, got: object) -> None:
    """Fail the case if `claim` is false; `got` is shown as it is written in Python."""
    if not claim:
        raise Failed(expected, got if isinstance(got, str) else repr(got))
