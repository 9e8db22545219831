"""The policy of each address, made from the settings."""

import pytest

from broker.address_settings import AddressSettings
from broker.policies import policies_of
from broker.settings import Settings, SettingsError, given_settings

ADDRESSES = [
    pytest.param("orders", True, "DLQ", 20, id="no pattern matches: what is set for all"),
    pytest.param("audit.eu", False, "DLQ", 20, id="one pattern, one setting"),
    pytest.param("audit.us.slow", False, "DLQ", 20, id="the first pattern that matches counts"),
    pytest.param("retry.slow", True, "graveyard", 3, id="several settings"),
]


@pytest.mark.parametrize(("address", "auto_create", "dead_letter", "deliveries"), ADDRESSES)
def test_an_address_has_the_policy_of_its_pattern(
    address: str, auto_create: bool, dead_letter: str, deliveries: int
) -> None:
    settings = Settings(
        address=(
            AddressSettings(pattern="audit.*", auto_create=False),
            AddressSettings(pattern="*.slow", dead_letter="graveyard", max_delivery_count=3),
        )
    )
    policy = policies_of(settings).of(address)
    assert policy.auto_create is auto_create
    assert policy.dead_letter == dead_letter
    assert policy.max_delivery_count == deliveries


def test_dead_letter_properties_are_asked_for_by_address() -> None:
    talkative = AddressSettings(pattern="jms.*", dead_letter_properties=True)
    policies = policies_of(Settings(address=(talkative,)))
    assert policies.of("jms.orders").dead_letter_properties is True
    assert policies.of("orders").dead_letter_properties is False


def test_an_address_has_pauses_of_its_own() -> None:
    settings = given_settings(
        redelivery_delay_ms=1000,
        address=(
            AddressSettings(pattern="orders", redelivery_backoff=2, redelivery_delay_max_ms=60_000),
            AddressSettings(pattern="hasty", redelivery_delay_ms=0),
        ),
    )
    pauses = [
        (policy.redelivery_delay_ms, policy.redelivery_backoff, policy.redelivery_delay_max_ms)
        for policy in map(policies_of(settings).of, ("orders", "hasty", "other"))
    ]
    assert pauses == [(1000, 2.0, 60_000), (0, 1.0, 0), (1000, 1.0, 0)]


@pytest.mark.parametrize("setting", ["dead_letter", "expiry"])
@pytest.mark.parametrize("name", ["$x", "d" * 256, "$tmp/queue/x"])
def test_a_queue_that_cannot_be_created_is_no_place_for_dead_letters(
    setting: str, name: str
) -> None:
    address = AddressSettings.model_validate({"pattern": "orders.*", setting: name})
    with pytest.raises(SettingsError, match=rf"^{setting} of orders.\*: "):
        policies_of(Settings(address=(address,)))
