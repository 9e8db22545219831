"""How long the unsettled deliveries of a terminus outlive its link (core 2.6.13, 3.5.6)."""

from __future__ import annotations

from mypy_extensions import i64

from broker.amqp.terminus import (
    CONNECTION_CLOSE,
    LINK_DETACH,
    NEVER,
    SESSION_END,
    UNSETTLED_STATE,
)
from broker.routing.addresses.identity import fits_a_key
from broker.routing.topics.lifetime import ExpiryPolicy


def granted_terms(policy: str, timeout_s: i64, *, most_s: i64) -> ExpiryPolicy:
    """Return the actual terms of a queue's source or a plain target that asks for these.

    It lasts at most `most_s` seconds after its connection, so that no peer hides the messages of a
    queue for longer. `session-end`, the default, is answered with `link-detach`: nothing is kept.
    """
    if most_s <= 0 or policy == SESSION_END:
        return ExpiryPolicy(LINK_DETACH)
    if policy == NEVER:
        return ExpiryPolicy(CONNECTION_CLOSE, timeout_s=most_s)
    return ExpiryPolicy(policy, timeout_s=min(timeout_s, most_s))


def outlives_link(terms: ExpiryPolicy) -> bool:
    """Return whether unsettled deliveries outlive a link of these terms.

    Not with `session-end`: it is what a peer gets that asks for nothing.
    """
    if terms.policy == LINK_DETACH:
        return terms.timeout_s > 0
    return terms.policy != SESSION_END


def subscription_terms(
    policy: str, timeout_s: i64, *, most_s: i64, has_map: bool
) -> ExpiryPolicy | None:
    """Return how long the deliveries of an unshared subscription of these terms are kept.

    None if they are not. Without a timeout (`never`) only for a link that shows by its `has_map`
    that it may resume them: JMS clients ask for `never`, and never do.
    """
    if most_s <= 0 or (policy == NEVER and not has_map):
        return None
    terms = ExpiryPolicy(policy, timeout_s=min(timeout_s, most_s))
    return terms if outlives_link(terms) else None


def outlives_broker(
    terms: ExpiryPolicy, durable: i64, *, has_map: bool, names: tuple[str, str]
) -> bool:
    """Return whether the unsettled deliveries of a terminus of these terms outlive the broker.

    `durable` is the durability that the client asks for. It has to show by its `has_map` that it
    may resume: JMS clients ask for `unsettled-state`, and never do. `names` are the container-id
    and the name of the link.
    """
    lasts = terms.policy == NEVER or terms.timeout_s > 0
    if not has_map or durable != UNSETTLED_STATE or not lasts:
        return False
    container_id, link_name = names
    return fits_a_key(container_id) and fits_a_key(link_name)
