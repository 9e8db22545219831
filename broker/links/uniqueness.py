"""Sole use of a container-id (WD10 2.1, "Enforcing Connection Uniqueness").

Pure functions decide which connections may stay (CON-02 to CON-06); `Container` acts on the
verdict.
"""

from enum import Enum
from typing import Final, final

from broker.amqp.errors import INVALID_FIELD, ConnectionFault
from broker.amqp.performatives import Open
from broker.amqp.types import Integer, UInt

SOLE_CONNECTION: Final = "sole-connection-for-container"
ENFORCEMENT_POLICY: Final = "sole-connection-enforcement-policy"
DETECTION_POLICY: Final = "sole-connection-detection-policy"

REFUSE_CONNECTION: Final = 0
CLOSE_EXISTING: Final = 1
STRONG: Final = 0
WEAK: Final = 1


@final
class Claim:
    """A connection's claim on its container-id; it is `exclusive` if it claims sole use.

    `closes_existing` and `weak` are its policies of enforcement and of detection.
    """

    def __init__(
        self, *, exclusive: bool, closes_existing: bool = False, weak: bool = False
    ) -> None:
        self.exclusive: Final = exclusive
        self.closes_existing: Final = closes_existing
        self.weak: Final = weak


class ContainerIdVerdict(Enum):
    """The decision on a new connection, and on the connections that hold its container-id."""

    ADMIT = "admit"
    REFUSE = "refuse the newcomer"
    CLOSE_EXISTING = "close the holders, admit the newcomer"


def claim_of(open: Open) -> Claim:
    """Return the claim in an open; raise ConnectionFault if a policy is invalid."""
    return Claim(
        exclusive=SOLE_CONNECTION in open.desired_capabilities,
        closes_existing=_policy(open, ENFORCEMENT_POLICY) == CLOSE_EXISTING,
        weak=_policy(open, DETECTION_POLICY) == WEAK,
    )


def _policy(open: Open, name: str) -> int:
    value = open.properties.get(name)
    if value is None:
        return 0
    number = value.value if isinstance(value, Integer) else value
    if number != 0 and number != 1:
        raise ConnectionFault(INVALID_FIELD, f"{name} is 0 or 1")
    return 1 if number == 1 else 0


def agreed(claim: Claim) -> dict[str, object]:
    """Return the policies in force for the broker's open; those left out are the defaults."""
    policies: dict[str, object] = {}
    if claim.exclusive and claim.closes_existing:
        policies[ENFORCEMENT_POLICY] = UInt(CLOSE_EXISTING)
    if claim.exclusive and claim.weak:
        policies[DETECTION_POLICY] = UInt(WEAK)
    return policies


def verdict(newcomer: Claim, holders: list[Claim]) -> ContainerIdVerdict:
    """Decide on a new connection. If it collides with a holder, the holder's policy wins (CON-05).

    A holder that did not claim sole use has no policy: then that of the new connection counts.
    """
    rivals = [holder for holder in holders if collide(newcomer, holder)]
    if not rivals:
        return ContainerIdVerdict.ADMIT
    for holder in rivals:
        decides = holder if holder.exclusive else newcomer
        if not decides.closes_existing:
            return ContainerIdVerdict.REFUSE
    return ContainerIdVerdict.CLOSE_EXISTING


def collide(one: Claim, other: Claim) -> bool:
    """Return whether both claims are exclusive, or one is that did not ask for weak detection."""
    if one.exclusive and other.exclusive:
        return True
    return (one.exclusive and not one.weak) or (other.exclusive and not other.weak)
