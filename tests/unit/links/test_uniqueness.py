"""Container-ids: the claim of an open to one, and the verdict on claims that collide."""

import pytest

from broker.amqp.errors import ConnectionFault
from broker.amqp.performatives import Open
from broker.amqp.types import Int, Symbol, UByte, UInt, ULong
from broker.links.uniqueness import (
    DETECTION_POLICY,
    ENFORCEMENT_POLICY,
    SOLE_CONNECTION,
    Claim,
    ContainerIdVerdict,
    agreed,
    claim_of,
    collide,
    verdict,
)

SHARING = Claim(exclusive=False)
SOLE = Claim(exclusive=True)
CLOSING = Claim(exclusive=True, closes_existing=True)
WEAK = Claim(exclusive=True, weak=True)
WEAK_CLOSING = Claim(exclusive=True, closes_existing=True, weak=True)
SHARING_CLOSING = Claim(exclusive=False, closes_existing=True)
SHARING_WEAK = Claim(exclusive=False, weak=True)


def opened(*capabilities: str, **policies: object) -> Open:
    """Return an open with these capabilities and policies."""
    names = {"enforcement": ENFORCEMENT_POLICY, "detection": DETECTION_POLICY}
    properties = {names[name]: value for name, value in policies.items()}
    return Open(
        container_id="client", desired_capabilities=list(capabilities), properties=properties
    )


# -- claims

CLAIMS = [
    pytest.param(opened(), (False, False, False), id="nothing"),
    pytest.param(opened("SHARED-SUBS"), (False, False, False), id="another capability"),
    pytest.param(opened(SOLE_CONNECTION), (True, False, False), id="sole use"),
    pytest.param(
        opened("ANONYMOUS-RELAY", SOLE_CONNECTION), (True, False, False), id="sole use, and more"
    ),
    pytest.param(
        opened(SOLE_CONNECTION, enforcement=UInt(0), detection=UInt(0)),
        (True, False, False),
        id="the defaults, said",
    ),
    pytest.param(
        opened(SOLE_CONNECTION, enforcement=None, detection=None),
        (True, False, False),
        id="null for the defaults",
    ),
    pytest.param(
        opened(SOLE_CONNECTION, enforcement=UInt(1)), (True, True, False), id="close-existing"
    ),
    pytest.param(
        opened(SOLE_CONNECTION, detection=UInt(1)), (True, False, True), id="weak detection"
    ),
    pytest.param(
        opened(SOLE_CONNECTION, enforcement=UByte(1), detection=ULong(1)),
        (True, True, True),
        id="numbers of other widths",
    ),
    pytest.param(
        opened(SOLE_CONNECTION, enforcement=1, detection=Int(1)),
        (True, True, True),
        id="signed numbers",
    ),
]


@pytest.mark.requirement("CON-02", "CON-05")
@pytest.mark.parametrize(("open_", "expected"), CLAIMS)
def test_an_open_claims(open_: Open, expected: tuple[bool, bool, bool]) -> None:
    claim = claim_of(open_)
    assert (claim.exclusive, claim.closes_existing, claim.weak) == expected


NO_POLICIES = [
    pytest.param(opened(SOLE_CONNECTION, enforcement=UInt(2)), id="an enforcement of 2"),
    pytest.param(opened(SOLE_CONNECTION, detection=UInt(2)), id="a detection of 2"),
    pytest.param(opened(SOLE_CONNECTION, enforcement=Int(-1)), id="a negative number"),
    pytest.param(opened(SOLE_CONNECTION, enforcement="close-existing"), id="a text"),
    pytest.param(opened(SOLE_CONNECTION, detection=Symbol("weak")), id="a symbol"),
    pytest.param(opened(SOLE_CONNECTION, detection=[]), id="a list"),
    pytest.param(opened(enforcement=UInt(7)), id="one that nothing depends on"),
]


@pytest.mark.requirement("CON-05")
@pytest.mark.parametrize("open_", NO_POLICIES)
def test_what_is_no_policy_is_refused(open_: Open) -> None:
    with pytest.raises(ConnectionFault, match="policy is 0 or 1") as refused:
        claim_of(open_)
    assert refused.value.condition == "amqp:invalid-field"
    assert refused.value.info is None  # it does not name the container-id as the invalid field


# -- verdicts

VERDICTS = [
    pytest.param(SHARING, [], ContainerIdVerdict.ADMIT, id="the first"),
    pytest.param(SOLE, [], ContainerIdVerdict.ADMIT, id="the first, who wants to be the only one"),
    pytest.param(SHARING, [SHARING, SHARING], ContainerIdVerdict.ADMIT, id="all of them share"),
    # strong detection: two claims collide if either of them asks for sole use
    pytest.param(SOLE, [SOLE], ContainerIdVerdict.REFUSE, id="two that want to be the only one"),
    pytest.param(SOLE, [SHARING], ContainerIdVerdict.REFUSE, id="the newcomer alone asks"),
    pytest.param(SHARING, [SOLE], ContainerIdVerdict.REFUSE, id="the holder alone asked"),
    pytest.param(SOLE, [SHARING, SHARING], ContainerIdVerdict.REFUSE, id="one against several"),
    # the holder's policy wins
    pytest.param(SOLE, [CLOSING], ContainerIdVerdict.CLOSE_EXISTING, id="a holder that makes way"),
    pytest.param(
        SHARING, [CLOSING], ContainerIdVerdict.CLOSE_EXISTING, id="making way for any newcomer"
    ),
    pytest.param(CLOSING, [CLOSING], ContainerIdVerdict.CLOSE_EXISTING, id="both would close"),
    pytest.param(CLOSING, [SOLE], ContainerIdVerdict.REFUSE, id="a holder that does not make way"),
    # a holder that never asked has no policy
    pytest.param(
        CLOSING, [SHARING], ContainerIdVerdict.CLOSE_EXISTING, id="against one that shares"
    ),
    pytest.param(
        CLOSING,
        [SHARING, SHARING],
        ContainerIdVerdict.CLOSE_EXISTING,
        id="against several that share",
    ),
    pytest.param(
        SOLE, [SHARING_CLOSING], ContainerIdVerdict.REFUSE, id="a policy without its capability"
    ),
    pytest.param(
        SHARING_CLOSING,
        [SHARING],
        ContainerIdVerdict.ADMIT,
        id="a newcomer's policy without its capability",
    ),
    # weak detection: such a claim collides only with others that ask for sole use
    pytest.param(WEAK, [SHARING], ContainerIdVerdict.ADMIT, id="weak beside one that shares"),
    pytest.param(SHARING, [WEAK], ContainerIdVerdict.ADMIT, id="one that shares beside weak"),
    pytest.param(WEAK, [WEAK], ContainerIdVerdict.REFUSE, id="weak against weak"),
    pytest.param(WEAK, [SOLE], ContainerIdVerdict.REFUSE, id="weak against strong"),
    pytest.param(SOLE, [WEAK], ContainerIdVerdict.REFUSE, id="strong against weak"),
    pytest.param(SHARING_WEAK, [SOLE], ContainerIdVerdict.REFUSE, id="weak without its capability"),
    pytest.param(
        WEAK,
        [SHARING, WEAK_CLOSING],
        ContainerIdVerdict.CLOSE_EXISTING,
        id="only rivals have a say",
    ),
    pytest.param(
        CLOSING, [SHARING, WEAK], ContainerIdVerdict.REFUSE, id="one of several does not make way"
    ),
    pytest.param(
        CLOSING, [SHARING, WEAK_CLOSING], ContainerIdVerdict.CLOSE_EXISTING, id="several make way"
    ),
]


@pytest.mark.requirement("CON-02", "CON-05", "CON-06")
@pytest.mark.parametrize(("newcomer", "holders", "expected"), VERDICTS)
def test_claims_that_meet(
    newcomer: Claim, holders: list[Claim], expected: ContainerIdVerdict
) -> None:
    assert verdict(newcomer, holders) is expected
    assert verdict(newcomer, holders[::-1]) is expected


EVERY_CLAIM = [SHARING, SOLE, CLOSING, WEAK, WEAK_CLOSING, SHARING_CLOSING, SHARING_WEAK]


@pytest.mark.parametrize("one", EVERY_CLAIM)
def test_it_does_not_matter_who_came_first_for_two_to_collide(one: Claim) -> None:
    for other in EVERY_CLAIM:
        assert collide(one, other) is collide(other, one)
        assert collide(one, other) is (verdict(one, [other]) is not ContainerIdVerdict.ADMIT)


# -- the policies that the broker's open reports

AGREED = [
    pytest.param(SHARING, {}, id="nothing to one that shares"),
    pytest.param(SOLE, {}, id="nothing where the defaults hold"),
    pytest.param(CLOSING, {ENFORCEMENT_POLICY: UInt(1)}, id="that holders are closed"),
    pytest.param(WEAK, {DETECTION_POLICY: UInt(1)}, id="that detection is weak"),
    pytest.param(WEAK_CLOSING, {ENFORCEMENT_POLICY: UInt(1), DETECTION_POLICY: UInt(1)}, id="both"),
    pytest.param(SHARING_CLOSING, {}, id="no policy without its capability"),
    pytest.param(SHARING_WEAK, {}, id="no detection without its capability"),
]


@pytest.mark.requirement("CON-05")
@pytest.mark.parametrize(("claim", "properties"), AGREED)
def test_our_open_tells(claim: Claim, properties: dict[str, object]) -> None:
    assert agreed(claim) == properties
