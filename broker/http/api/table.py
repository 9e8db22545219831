"""All endpoints of the API, in the order of its description."""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.http.api import messages
from broker.http.api.changes import back_up, perform, put_node, put_user
from broker.http.api.endpoint import DELETE, GET, POST, PUT, Endpoint
from broker.http.api.entities import CURSOR, LIMIT, ResourceKind, performed, stated, whole
from broker.http.api.jobs import Jobs
from broker.http.api.kinds import (
    CONNECTIONS,
    LEASES,
    LINKS,
    LOGINS,
    QUEUES,
    ROLES,
    RULES,
    SINKS,
    SUBSCRIPTIONS,
    TOKENS,
    TOPICS,
    TRANSACTIONS,
    USERS,
    flag,
    text,
)
from broker.http.api.models import (
    AccessBody,
    AccessRecord,
    AllSettings,
    AttachBody,
    AttachRecord,
    AuditRecord,
    BackupBody,
    BoundsRecord,
    CheckRecord,
    FlowRecord,
    JobRecord,
    ManagementBody,
    ManagementRecord,
    MessageActionBody,
    MessageContent,
    MessagePlace,
    NodeBody,
    Nothing,
    ReloadRecord,
    RouteBody,
    RouteRecord,
    TokenBody,
    UserBody,
)
from broker.http.api.parameters import NUMBER, Parameter
from broker.management.acl import ACL
from broker.management.audit_records import AUDIT_RECORD
from broker.management.backups import BACKUP, BackupRecord
from broker.management.configuration import SETTINGS
from broker.management.events import EVENTS
from broker.management.explain import ATTACH
from broker.management.flow import FLOW
from broker.management.messages import MessageRecord
from broker.management.overview import BROKER, BrokerRecord
from broker.management.response import ACCEPTED, CREATED, NO_CONTENT, OK
from broker.management.route import ROUTE
from broker.management.stores import QUARANTINED, STORE, QuarantinedRecord, StoreRecord
from broker.management.tokens import TOKEN, NewTokenRecord

OF_NODES: Final = (
    flag("if_empty", "fail if it holds messages"),
    flag("if_unused", "fail if it has consumers or producers"),
)
PLACE: Final = (
    text("queue", "the queue of the messages; or else `subscription`"),
    text("subscription", "the identity of the subscription whose messages these are"),
)
OF_ID: Final = "/{id:int}"
SELECTOR: Final = text("selector", "only messages that match this JMS selector")
AFTER: Final = Parameter(name=CURSOR.name, description=CURSOR.description, argument="after")


def endpoints() -> list[Endpoint]:
    """Return all endpoints. Those of one broker are made once, as jobs are remembered with them."""
    return [
        Endpoint(
            method=GET,
            path="/overview",
            summary="Read what the broker is and how much it holds",
            right="view management:metrics",
            work=performed(BROKER, "READ"),
            result=BrokerRecord,
        ),
        *_nodes(QUEUES),
        *_nodes(TOPICS),
        SUBSCRIPTIONS.listing(),
        SUBSCRIPTIONS.reading(),
        SUBSCRIPTIONS.removal(
            "DELETE",
            "Delete a subscription with its messages",
            (flag("force", "even if it has consumers, whose links are then detached"),),
        ),
        *_messages(),
        *_scheduled(),
        *_actions(Jobs()),
        *_connections(),
        *_stores(),
        *_users(),
        *_access(),
        *_explanations(),
        *_configuration(),
        *_records(),
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


def _messages() -> list[Endpoint]:
    right = "view management:messages"
    return [
        Endpoint(
            method=GET,
            path="/messages",
            summary="List messages in their order of delivery; none is acquired",
            right=right,
            work=messages.list_messages,
            parameters=(
                *PLACE,
                Parameter(
                    name="state",
                    choices=tuple(messages.STATES),
                    description="ready and held if left out",
                ),
                *(SELECTOR, LIMIT, AFTER),
            ),
            result=MessageRecord,
            is_list=True,
        ),
        Endpoint(
            method=GET,
            path=f"/messages{OF_ID}",
            summary="Read one message without its body; it is not acquired",
            right=right,
            work=messages.read_message,
            parameters=PLACE,
            result=MessageContent,
        ),
        Endpoint(
            method=GET,
            path=f"/messages{OF_ID}/body",
            summary="Read the body of a message, at most 64 KiB of it",
            right=right,
            work=messages.read_body,
            parameters=PLACE,
            other_status=NO_CONTENT,
        ),
    ]


def _scheduled() -> list[Endpoint]:
    return [
        Endpoint(
            method=GET,
            path="/scheduled",
            summary="List messages that wait for their delivery time, the earliest first",
            right="view management:messages",
            work=messages.list_scheduled,
            parameters=(*PLACE, SELECTOR, LIMIT, AFTER),
            result=MessageRecord,
            is_list=True,
        ),
        Endpoint(
            method=DELETE,
            path=f"/scheduled{OF_ID}",
            summary="Delete a message that waits for its delivery time",
            right="edit management:messages",
            work=messages.cancel_scheduled,
            parameters=PLACE,
            status=NO_CONTENT,
        ),
    ]


def _actions(jobs: Jobs) -> list[Endpoint]:
    return [
        Endpoint(
            method=POST,
            path="/message-actions",
            summary="Move, retry, delete messages, or deliver them early, beside other work",
            right="edit management:messages",
            work=jobs.begin,
            body=MessageActionBody,
            result=JobRecord,
            status=ACCEPTED,
        ),
        Endpoint(
            method=GET,
            path="/jobs",
            summary="List actions since the start, the newest first",
            right="view management:messages",
            work=jobs.list,
            result=JobRecord,
            is_list=True,
        ),
        Endpoint(
            method=GET,
            path="/jobs/{id:int}",
            summary="Read how far an action has come",
            right="view management:messages",
            work=jobs.read,
            result=JobRecord,
        ),
    ]


def _connections() -> list[Endpoint]:
    return [
        CONNECTIONS.listing(),
        CONNECTIONS.reading(),
        CONNECTIONS.removal(
            "DELETE", "Close a connection", (text("reason", "what its client is told"),)
        ),
        LINKS.listing(),
        TRANSACTIONS.listing(),
        TRANSACTIONS.reading(),
        TRANSACTIONS.removal("ROLLBACK", "Roll back a transaction; its session has to begin anew"),
        LEASES.listing(),
        LEASES.reading(),
        LEASES.removal("RELEASE", "End a lease: its messages return to their places"),
        SINKS.listing(),
        SINKS.reading(),
        SINKS.removal("FORGET", "Drop all that a sink has staged, and its last batch number"),
    ]


def _stores() -> list[Endpoint]:
    right = "view management:store"
    return [
        Endpoint(
            method=GET,
            path="/stores",
            summary="Read the one store, and the broker's memory",
            right=right,
            work=whole(STORE),
            result=StoreRecord,
            is_list=True,
        ),
        Endpoint(
            method=GET,
            path="/quarantined-messages",
            summary="List stored messages that are damaged",
            right=right,
            work=whole(QUARANTINED, "after"),
            parameters=(
                LIMIT,
                Parameter(
                    name=CURSOR.name,
                    type=NUMBER,
                    argument="after",
                    description=CURSOR.description,
                ),
            ),
            result=QuarantinedRecord,
            is_list=True,
        ),
        Endpoint(
            method=GET,
            path="/backups",
            summary="Read the last backup since the start",
            right=right,
            work=whole(BACKUP),
            result=BackupRecord,
            is_list=True,
        ),
        Endpoint(
            method=POST,
            path="/backups",
            summary="Begin to copy the store to a new file of the broker's machine",
            right="edit management:store",
            work=back_up,
            body=BackupBody,
            result=BackupRecord,
            status=ACCEPTED,
        ),
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


def _explanations() -> list[Endpoint]:
    return [
        Endpoint(
            method=POST,
            path="/explain/attach",
            summary="Say what an attach of a receiver would lead to",
            right="view some part of management",
            work=stated(ATTACH, "EXPLAIN"),
            body=AttachBody,
            result=AttachRecord,
        ),
        Endpoint(
            method=POST,
            path="/explain/route",
            summary="Say where a message would go: the node, and the subscriptions of a topic",
            right="view management:queues, topics and subscriptions",
            work=stated(ROUTE, "EXPLAIN"),
            body=RouteBody,
            result=RouteRecord,
        ),
        Endpoint(
            method=POST,
            path="/explain/flow",
            summary="Say why the consumers of a queue or subscription get no messages",
            right="view management:queues, subscriptions and connections",
            work=stated(FLOW, "EXPLAIN"),
            body=MessagePlace,
            result=FlowRecord,
        ),
    ]


def _configuration() -> list[Endpoint]:
    return [
        Endpoint(
            method=GET,
            path="/config",
            summary="Read all settings with their origin, without secrets",
            right="view management:config",
            work=performed(SETTINGS, "READ", "broker"),
            result=AllSettings,
        ),
        Endpoint(
            method=POST,
            path="/config/reload",
            summary="Read the settings again, and apply those that need no restart",
            right="edit management:config",
            work=performed(SETTINGS, "RELOAD", "broker"),
            parameters=(flag("dry_run", "only say what a reload would do"),),
            body=Nothing,
            result=ReloadRecord,
        ),
    ]


def _records() -> list[Endpoint]:
    return [
        Endpoint(
            method=GET,
            path="/audit",
            summary="List audit records, the newest first",
            right="view management:audit",
            work=whole(AUDIT_RECORD, "before"),
            parameters=(
                text("since", "a time, as in records"),
                text("action", "a shell pattern of actions"),
                text("user", "records of this user, or about it"),
                LIMIT,
                Parameter(
                    name=CURSOR.name,
                    type=NUMBER,
                    low=1,
                    argument="before",
                    description=CURSOR.description,
                ),
            ),
            result=AuditRecord,
            is_list=True,
        ),
        Endpoint(
            method=GET,
            path="/events/bounds",
            summary="Read the ids of the first and the last row of the event log",
            right="view management:events",
            work=performed(EVENTS, "BOUNDS"),
            result=BoundsRecord,
        ),
    ]
