"""Events that clients repeat: the first one at once, then a count a minute."""

import pytest

from broker.audit.record import Actor, AuditEvent
from broker.audit.repeats import KEYS_MAX, ORIGIN_KEYS_MAX, WINDOW_S, Repeats

pytestmark = pytest.mark.requirement("SEC-08")


def denied(resource: str, *, host: str = "10.0.0.1", port: int = 1) -> AuditEvent:
    return AuditEvent(
        action="access.denied",
        resource=resource,
        actor=Actor(user="ada", address=f"{host}:{port}"),
        after={"verb": "send"},
        repeat_key=("access.denied", resource),
    )


def test_events_without_a_key_are_all_recorded() -> None:
    repeats = Repeats()
    assert all(repeats.register(AuditEvent(action="node.deleted")) for _ in range(1000))
    assert repeats.is_idle()


def test_the_first_is_recorded_and_the_others_are_counted() -> None:
    repeats = Repeats()
    assert [repeats.register(denied("queue:a", port=port)) for port in range(4)] == [
        *(True, False, False, False)
    ]
    assert repeats.register(denied("queue:b"))
    (told,) = repeats.collect()
    assert told.resource == "queue:a"
    assert told.after == {"verb": "send", "count": 3, "within_s": WINDOW_S}
    assert repeats.register(told), "a count is recorded"
    assert repeats.is_idle()
    assert repeats.register(denied("queue:a")), "a new minute"


def test_one_address_has_few_keys_and_others_have_theirs() -> None:
    repeats = Repeats()
    first = [repeats.register(denied(f"queue:{number}")) for number in range(1000)]
    assert sum(first) == ORIGIN_KEYS_MAX
    assert repeats.register(denied("queue:x", host="10.0.0.2"))
    (told,) = repeats.collect()
    assert told.after == {
        "what": "further ones, too many to tell apart",
        "count": 1000 - ORIGIN_KEYS_MAX,
        "within_s": WINDOW_S,
    }


def test_all_addresses_together_have_a_bound() -> None:
    repeats = Repeats()
    first = [
        repeats.register(denied(f"queue:{number}", host=f"10.0.{number % 100}.1"))
        for number in range(2 * KEYS_MAX)
    ]
    assert sum(first) == KEYS_MAX
    (told,) = repeats.collect()
    assert told.after is not None
    assert told.after["count"] == KEYS_MAX
