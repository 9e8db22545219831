"""Subscribers and lookups as JMS clients attach them, on a broker without sockets."""

from broker.amqp.performatives import RECEIVER, Attach, Detach
from broker.amqp.terminus import LINK_DETACH, NEVER, Source, Target
from tests.support.broker import Broker, Client
from tests.support.frames import attach_receiver


def subscribing(
    words: str = "", name: str = "n", *, address: str = "t", handle: int = 0, **fields: object
) -> Attach:
    """Return a subscriber's attach; `words` are of `shared global durable` (SUB-01 to SUB-08)."""
    durable = "durable" in words
    given: dict[str, object] = {
        "address": address,
        "durable": 2 if durable else 0,
        "expiry_policy": NEVER if durable else LINK_DETACH,
        "capabilities": ["topic", *(word for word in ("shared", "global") if word in words)],
        **fields,
    }
    return attach_receiver(name=name, handle=handle, source=Source(**given))  # type: ignore[arg-type]


def looking_up(words: str = "", name: str = "n", *, handle: int = 0) -> Attach:
    """Return the attach of a lookup (SUB-09 to SUB-12)."""
    return Attach(
        name=name, handle=handle, role=RECEIVER, target=Target(), desired_capabilities=words.split()
    )


def subscribe(
    client: Client, words: str = "", name: str = "n", *, credit: int = 0, **fields: object
) -> Attach:
    """Attach a subscriber with `credit`; return the broker's answer."""
    answer = client.attach(subscribing(words, name, **fields))  # type: ignore[arg-type]
    if credit:
        client.flow(handle=int(answer.handle), credit=credit, delivery_count=0)
    return answer


def leave(client: Client, handle: int = 0, *, closed: bool = False) -> str | None:
    """Detach the link; return the condition in the broker's answer, None if there is no error."""
    client.send(Detach(handle=handle, closed=closed))
    answer = client.expect(Detach)
    assert answer.closed is closed
    return answer.error.condition if answer.error else None


def unsubscribe(client: Client, words: str = "", name: str = "n") -> str | None:
    """Look the subscription up and close the link, as JMS clients do; return the condition.

    None means that the subscription has ended.
    """
    client.send(looking_up(words, name, handle=9))
    answer = client.expect(Attach)
    if answer.source is None:
        detach = client.expect_last(Detach)
        assert detach.closed
        client.send(Detach(handle=9, closed=True))
        assert detach.error is not None
        return detach.error.condition
    return leave(client, 9, closed=True)


def names(broker: Broker) -> list[str]:
    """Return the sorted names of all named subscriptions."""
    return sorted(identity[1] for identity in broker.router.subscriptions.named)
