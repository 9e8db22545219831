"""Sole use of a container-id (WD10 2.1, "Enforcing Connection Uniqueness"): who may stay.

CON-02 to CON-06 as pure functions; `Container` acts on the verdict.
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
    """What a connection wants of its container-id."""

    def __init__(
        self, *, exclusive: bool, closes_existing: bool = False, weak: bool = False
    ) -> None:
        self.exclusive: Final = exclusive
        self.closes_existing: Final = closes_existing
        self.weak: Final = weak


class ContainerIdVerdict(Enum):
    """What happens to a newcomer, and to those who hold its container-id."""

    ADMIT = "admit"
    REFUSE = "refuse the newcomer"
    CLOSE_EXISTING = "close the holders, admit the newcomer"


def claim_of(open: Open) -> Claim:
    """The claim in an open; ConnectionFault for a policy that is not one."""
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
    """The policies in force as our open tells them; those left out are the defaults."""
    policies: dict[str, object] = {}
    if claim.exclusive and claim.closes_existing:
        policies[ENFORCEMENT_POLICY] = UInt(CLOSE_EXISTING)
    if claim.exclusive and claim.weak:
        policies[DETECTION_POLICY] = UInt(WEAK)
    return policies


def verdict(newcomer: Claim, holders: list[Claim]) -> ContainerIdVerdict:
    """Judge a newcomer. Where they collide, the holder's policy wins (CON-05).

    A holder that never asked to be the only one has none: there the newcomer's counts.
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
    """Whether both are exclusive; or one of them, unless it asked for weak detection."""
    if one.exclusive and other.exclusive:
        return True
    return (one.exclusive and not one.weak) or (other.exclusive and not other.weak)
