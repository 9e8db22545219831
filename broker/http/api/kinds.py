"""The kinds of entities that are resources, with the filters of their lists."""

from __future__ import annotations

from typing import Final

from broker.http.api.entities import ResourceKind
from broker.http.api.parameters import FLAG, Parameter
from broker.management.acl import ACL, RuleRecord
from broker.management.bridges import BRIDGE, BridgeRecord
from broker.management.connections import CONNECTION, LINK, ConnectionRecord, LinkRecord
from broker.management.entity import attributes_of
from broker.management.leases import LEASE, LeaseRecord
from broker.management.login_sources import LOGIN_SOURCE, LoginSourceRecord
from broker.management.members import MEMBER, MemberRecord
from broker.management.nodes import NodeRecord
from broker.management.roles import ROLE, RoleRecord
from broker.management.sinks import SINK, SinkRecord
from broker.management.subscriptions import SUBSCRIPTION, SubscriptionRecord
from broker.management.suspended_links import SUSPENDED_LINK, SuspendedLinkRecord
from broker.management.tokens import TOKEN, TokenRecord
from broker.management.transactions import TRANSACTION, TransactionRecord
from broker.management.users import USER, UserRecord
from broker.routing.queues.node import QUEUE, TOPIC
from broker.security.api_tokens import ENDED, EXPIRED, VALID

NODE_SETTINGS: Final = (
    *("name", "type", "temporary", "connection", "dead_letter", "expiry"),
    *("max_delivery_count", "max_messages", "max_bytes", "duplicate_window"),
)


def flag(name: str, description: str) -> Parameter:
    """Return a boolean parameter."""
    return Parameter(name=name, type=FLAG, description=description)


def text(name: str, description: str, *, argument: str = "") -> Parameter:
    """Return a parameter that is a text."""
    return Parameter(name=name, description=description, argument=argument)


TEMPORARY: Final = flag("temporary", "only temporary nodes, or only others")

QUEUES: Final = ResourceKind(
    path="/queues",
    type=QUEUE,
    part="queues",
    record=NodeRecord,
    noun="queue",
    settings=NODE_SETTINGS,
    filters=(TEMPORARY,),
)
TOPICS: Final = ResourceKind(
    path="/topics",
    type=TOPIC,
    part="topics",
    record=NodeRecord,
    noun="topic",
    settings=NODE_SETTINGS,
    filters=(TEMPORARY,),
)
SUBSCRIPTIONS: Final = ResourceKind(
    path="/subscriptions",
    type=SUBSCRIPTION,
    part="subscriptions",
    record=SubscriptionRecord,
    noun="subscription",
    by="identity",
    filters=(
        text("topic", "the address that it subscribes to"),
        text("client_id", "the container-id that it belongs to"),
        flag("shared", "whether several connections may consume from it"),
        flag("durable", "whether it outlives its consumers"),
        flag("active", "whether it has consumers"),
    ),
)
CONNECTIONS: Final = ResourceKind(
    path="/connections",
    type=CONNECTION,
    part="connections",
    record=ConnectionRecord,
    noun="connection",
    by="identity",
    filters=(text("user", "the user"), text("client_id", "the container-id")),
)
LINKS: Final = ResourceKind(
    path="/links",
    type=LINK,
    part="connections",
    record=LinkRecord,
    noun="link",
    filters=(
        text("connection", "the identity of the connection"),
        Parameter(name="role", choices=("sender", "receiver"), description="the client's role"),
        text("address", "the address of the node"),
        flag("stalled", "whether the client has not settled a delivery for 60 s"),
    ),
)
SUSPENDED_LINKS: Final = ResourceKind(
    path="/suspended-links",
    type=SUSPENDED_LINK,
    part="connections",
    record=SuspendedLinkRecord,
    noun="suspended link",
    by="identity",
)
TRANSACTIONS: Final = ResourceKind(
    path="/transactions",
    type=TRANSACTION,
    part="connections",
    record=TransactionRecord,
    noun="transaction",
    by="identity",
    filters=(text("connection", "the identity of the connection"),),
)
LEASES: Final = ResourceKind(
    path="/leases", type=LEASE, part="leases", record=LeaseRecord, noun="lease"
)
SINKS: Final = ResourceKind(path="/sinks", type=SINK, part="sinks", record=SinkRecord, noun="sink")
BRIDGES: Final = ResourceKind(
    path="/bridges", type=BRIDGE, part="bridges", record=BridgeRecord, noun="bridge"
)
USERS: Final = ResourceKind(
    path="/users",
    type=USER,
    part="users",
    record=UserRecord,
    noun="user",
    settings=attributes_of(UserRecord),
    filters=(
        flag("enabled", "whether the user may log in"),
        flag("administrator", "whether the user has the role admin"),
        Parameter(
            name="source",
            choices=("file", "store", "settings"),
            description="where the user is defined",
        ),
    ),
)
LOGINS: Final = ResourceKind(
    path="/logins",
    type=LOGIN_SOURCE,
    part="users",
    record=LoginSourceRecord,
    noun="source of failed logins",
    nouns="sources of failed logins",
)
MEMBERS: Final = ResourceKind(
    path="/members",
    type=MEMBER,
    part="config",
    record=MemberRecord,
    noun="member of the group",
    nouns="members of the group",
)
TOKENS: Final = ResourceKind(
    path="/tokens",
    type=TOKEN,
    part="tokens",
    record=TokenRecord,
    noun="API token",
    filters=(
        text("owner", "the user to whom it belongs"),
        Parameter(
            name="state",
            choices=(VALID, EXPIRED, ENDED),
            description="whether it logs in; one has ended if its owner's password has changed",
        ),
    ),
)
ROLES: Final = ResourceKind(
    path="/roles",
    type=ROLE,
    part="acl",
    record=RoleRecord,
    noun="role",
    filters=(flag("built_in", "whether the role is built in"),),
)
RULES: Final = ResourceKind(
    path="/rules",
    type=ACL,
    part="acl",
    record=RuleRecord,
    noun="access rule",
    filters=(
        Parameter(
            name="effect", choices=("allow", "deny", "limit"), description="what the rule does"
        ),
        flag("built_in", "whether the rule is one of a built-in role"),
    ),
)
