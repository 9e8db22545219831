"""Lifetime of dynamic nodes (core 3.5.10 to 3.5.13), never longer than their connection."""

from enum import Enum

from mypy_extensions import i64


class DeletePolicy(Enum):
    """Condition for deleting a dynamic node, once the link that made it has ceased to exist."""

    ON_CLOSE = "nothing"
    ON_NO_LINKS = "that it has no links"
    ON_NO_MESSAGES = "that it holds no messages"
    ON_NO_LINKS_OR_MESSAGES = "that it has no links and holds no messages"


def is_over(policy: DeletePolicy, *, links: i64, messages: i64) -> bool:
    """Return whether a dynamic node is to be deleted, now that the link that made it is gone."""
    if policy is DeletePolicy.ON_NO_LINKS:
        return links == 0
    if policy is DeletePolicy.ON_NO_MESSAGES:
        return messages == 0
    if policy is DeletePolicy.ON_NO_LINKS_OR_MESSAGES:
        return links == 0 and messages == 0
    return True
