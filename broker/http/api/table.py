"""All endpoints of the API, in the order of its description."""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.http.api.broker_endpoints import broker_endpoints
from broker.http.api.changes import perform, put_node, put_user
from broker.http.api.endpoint import GET, POST, PUT, Endpoint
from broker.http.api.entities import AFTER, LIMIT, ResourceKind, performed, stated
from broker.http.api.explain_endpoints import explain_endpoints
from broker.http.api.jobs import Jobs
from broker.http.api.kinds import (
    BRIDGES,
    CONNECTIONS,
    LEASES,
    LINKS,
    LOGINS,
    QUEUES,
    ROLES,
    RULES,
    SINKS,
    SUBSCRIPTIONS,
    SUSPENDED_LINKS,
    TOKENS,
    TOPICS,
    TRANSACTIONS,
    USERS,
    flag,
    text,
)
from broker.http.api.message_endpoints import message_endpoints
from broker.http.api.models import (
    AccessBody,
    AccessRecord,
    CheckRecord,
    ManagementBody,
    ManagementRecord,
    NodeBody,
    TokenBody,
    TopicBranchRecord,
    UserBody,
)
from broker.http.api.parameters import NUMBER, Parameter
from broker.http.api.topics_tree import DEPTH_MAX, list_topics_tree
from broker.management.acl import ACL
from broker.management.response import CREATED, OK
from broker.management.tokens import TOKEN, NewTokenRecord

OF_NODES: Final = (
    flag("if_empty", "fail if it holds messages"),
    flag("if_unused", "fail if it has consumers or producers"),
)


def endpoints() -> list[Endpoint]:
    """Return all endpoints. Those of one broker are made once, as jobs are remembered with them."""
    jobs = Jobs()
    return [
        *broker_endpoints(jobs),
        *_nodes(QUEUES),
        *_nodes(TOPICS),
        Endpoint(
            method=GET,
            path="/topics-tree",
            summary="List topics by the first words of their names, with sums",
            right="view management:topics",
            work=list_topics_tree,
            parameters=(
                text("prefix", "only topics that begin with these words"),
                Parameter(
                    name="depth",
                    type=NUMBER,
                    low=1,
                    high=DEPTH_MAX,
                    description="the words behind the prefix that tell topics apart, 1 if left out",
                ),
                *(LIMIT, AFTER),
            ),
            result=TopicBranchRecord,
            is_list=True,
        ),
        SUBSCRIPTIONS.listing(),
        SUBSCRIPTIONS.reading(),
        SUBSCRIPTIONS.removal(
            "DELETE",
            "Delete a subscription with its messages",
            (flag("force", "even if it has consumers, whose links are then detached"),),
        ),
        *message_endpoints(jobs),
        *_connections(),
        *_users(),
        *_access(),
        *explain_endpoints(),
        Endpoint(
            method=POST,
            path="/management",
            summary="Carry out any request of management, as over AMQP",
            right="that of the operation",
            work=perform,
            body=ManagementBody,
            result=ManagementRecord,
        ),
    ]


def _nodes(kind: ResourceKind) -> list[Endpoint]:
    return [
        kind.listing(),
        kind.reading(),
        Endpoint(
            method=PUT,
            path=kind.one(),
            summary=f"Create a {kind.noun}, if it does not exist",
            right=f"edit management:{kind.part}",
            work=partial(put_node, kind),
            body=NodeBody,
            result=kind.record,
            status=CREATED,
            other_status=OK,
            is_conditional=True,
        ),
        kind.removal("DELETE", f"Delete a {kind.noun} with its messages", OF_NODES),
    ]


def _connections() -> list[Endpoint]:
    return [
        CONNECTIONS.listing(),
        CONNECTIONS.reading(),
        CONNECTIONS.removal(
            "DELETE", "Close a connection", (text("reason", "what its client is told"),)
        ),
        LINKS.listing(),
        SUSPENDED_LINKS.listing(),
        SUSPENDED_LINKS.reading(),
        SUSPENDED_LINKS.removal("END", "End a suspended link: its messages wait again"),
        TRANSACTIONS.listing(),
        TRANSACTIONS.reading(),
        TRANSACTIONS.removal("ROLLBACK", "Roll back a transaction; its session has to begin anew"),
        LEASES.listing(),
        LEASES.reading(),
        LEASES.removal("RELEASE", "End a lease: its messages return to their places"),
        SINKS.listing(),
        SINKS.reading(),
        SINKS.removal("FORGET", "Drop all that a sink has staged, and its last batch number"),
        BRIDGES.listing(),
        BRIDGES.reading(),
    ]


def _users() -> list[Endpoint]:
    return [
        USERS.listing(),
        USERS.reading(),
        Endpoint(
            method=PUT,
            path=USERS.one(),
            summary="Add a user, or change one",
            right="edit management:users",
            work=put_user,
            body=UserBody,
            result=USERS.record,
            other_status=CREATED,
            is_conditional=True,
        ),
        USERS.removal("DELETE", "Remove a user; its connections end within five seconds"),
        LOGINS.listing(),
        LOGINS.reading(),
        LOGINS.removal("DELETE", "Forget failed logins: the source may log in again at once"),
        TOKENS.listing(),
        TOKENS.reading(),
        Endpoint(
            method=POST,
            path=TOKENS.path,
            summary="Make an API token; only this response has it",
            right="edit management:tokens",
            work=stated(TOKEN, "CREATE"),
            body=TokenBody,
            result=NewTokenRecord,
            status=CREATED,
        ),
        TOKENS.removal("DELETE", "Revoke an API token"),
    ]


def _access() -> list[Endpoint]:
    return [
        ROLES.listing(),
        ROLES.reading(),
        RULES.listing(),
        RULES.reading(),
        Endpoint(
            method=POST,
            path="/access/explain",
            summary="Decide about a right of a client, and say why",
            right="view management:acl",
            work=stated(ACL, "EXPLAIN"),
            body=AccessBody,
            result=AccessRecord,
        ),
        Endpoint(
            method=GET,
            path="/access/check",
            summary="Look for rules that never decide, unknown roles, users without a role",
            right="view management:acl",
            work=performed(ACL, "CHECK"),
            result=CheckRecord,
        ),
    ]
