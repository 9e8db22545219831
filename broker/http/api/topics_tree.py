"""Topics by the words of their names: a tree, of which a request reads one part."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from broker.http.api.endpoint import Call, CallResult
from broker.management.entity import VIEW
from broker.management.listing import LIMIT_DEFAULT
from broker.management.stretches import in_portions
from broker.routing.addresses.pattern import SEPARATOR
from broker.security.resources import MANAGEMENT, Resource

TOPICS: Final = Resource(MANAGEMENT, "topics")

DEPTH_MAX: Final = 16
"""Maximum words behind the prefix by which topics are told apart."""


@dataclass(kw_only=True)
class TopicBranch:
    """All topics whose names begin with the same words.

    `name` are these words, `is_topic` tells whether a topic has that very name. `topics` are
    counted; `subscriptions` and `published` are sums over them.
    """

    name: str
    is_topic: bool = False
    topics: int = 0
    subscriptions: int = 0
    published: int = 0


async def list_topics_tree(call: Call) -> CallResult:
    """Return the branches whose names have `depth` more words than `prefix`, or end before."""
    call.demand(VIEW, TOPICS)
    arguments = call.arguments
    prefix, after = str(arguments.get("prefix", "")), str(arguments.get("after", ""))
    depth, limit = arguments.get("depth", 1), arguments.get("limit", LIMIT_DEFAULT)
    assert isinstance(depth, int)
    assert isinstance(limit, int)
    begins = prefix + SEPARATOR if prefix else ""
    count = prefix.count(SEPARATOR) + 1 + depth if prefix else depth
    branches: dict[str, TopicBranch] = {}
    async for portion in in_portions(list(call.site.container.router.topics.values())):
        for topic in portion:
            if topic.is_temporary or not topic.address.startswith(begins):
                continue
            name = SEPARATOR.join(topic.address.split(SEPARATOR, count)[:count])
            branch = branches.setdefault(name, TopicBranch(name=name))
            branch.is_topic = branch.is_topic or topic.address == name
            branch.topics += 1
            branch.subscriptions += len(topic.subscriptions)
            branch.published += int(topic.published)
    names = sorted(name for name in branches if name > after)
    following = names[limit - 1] if len(names) > limit else None
    items = [asdict(branches[name]) for name in names[:limit]]
    return CallResult(body={"items": items, "next": following})
