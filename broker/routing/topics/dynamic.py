"""How long a dynamic node lives (core 3.5.10 to 3.5.13), never longer than its connection."""

from enum import Enum

from mypy_extensions import i64


class DeletePolicy(Enum):
    """What the node waits for, once the link that made it has ceased to exist."""

    ON_CLOSE = "nothing"
    ON_NO_LINKS = "that it has no links"
    ON_NO_MESSAGES = "that it holds no messages"
    ON_NO_LINKS_OR_MESSAGES = "that it has no links and holds no messages"


def is_over(policy: DeletePolicy, *, links: i64, messages: i64) -> bool:
    """Whether a node without its creator is to be deleted."""
    if policy is DeletePolicy.ON_NO_LINKS:
        return links == 0
    if policy is DeletePolicy.ON_NO_MESSAGES:
        return messages == 0
    if policy is DeletePolicy.ON_NO_LINKS_OR_MESSAGES:
        return links == 0 and messages == 0
    return True
