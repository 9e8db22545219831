"""The lists of the console: their columns, and the pages of single entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.http.api.kinds import (
    BRIDGES,
    CONNECTIONS,
    LEASES,
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
)

NUMBER: Final = "number"
BYTES: Final = "bytes"
DURATION: Final = "duration"
TIME: Final = "time"
FLAG: Final = "flag"
TEXT: Final = "text"
"""How a value is shown."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a list. `page` is the list to whose entity of that name the value leads."""

    attribute: str
    title: str
    form: str = TEXT
    page: str = ""

    @property
    def is_right_aligned(self) -> bool:
        """Whether values are numbers, which are compared by their digits."""
        return self.form in (NUMBER, BYTES, DURATION)


def text(attribute: str, title: str, page: str = "") -> Column:
    return Column(attribute=attribute, title=title, page=page)


def number(attribute: str, title: str, form: str = NUMBER) -> Column:
    return Column(attribute=attribute, title=title, form=form)


@dataclass(frozen=True, kw_only=True)
class ConsoleList:
    """A list: `path` is that of the API and, below `/console`, of the console.

    `entity` is the path of one entity in the API, empty if entities have no page; `by` is the
    attribute that names one in it. `related` are lists that the page of an entity has, with the
    parameter that is its name. `removal` says what removes an entity, empty if nothing does.
    `can_be_made`: the console has a form for a new one.
    """

    path: str
    title: str
    noun: str
    about: str
    columns: Sequence[Column]
    entity: str = ""
    by: str = "name"
    related: Sequence[tuple[str, str]] = ()
    removal: str = ""
    removal_effect: str = ""
    can_be_made: bool = False

    @property
    def key(self) -> str:
        """The path without its slash."""
        return self.path.strip("/")


LISTINGS: Final[Mapping[str, ConsoleList]] = {
    each.key: each
    for each in (
        ConsoleList(
            path="/queues",
            title="Queues",
            noun="queue",
            about="Queues with the messages that are in them now.",
            columns=(
                text("name", "Queue", "queues"),
                number("messages", "Ready"),
                number("acquired", "Unsettled"),
                number("held", "Held"),
                number("bytes", "Size", BYTES),
                number("consumers", "Consumers"),
                number("producers", "Producers"),
                number("published", "Received"),
                text("dead_letter", "Dead letters to"),
            ),
            entity=QUEUES.one(),
            related=(("/links", "address"),),
            removal="Delete",
            removal_effect="All messages in it are lost, and links to it are detached.",
            can_be_made=True,
        ),
        ConsoleList(
            path="/topics",
            title="Topics",
            noun="topic",
            about="Topics. Their messages are in the subscriptions.",
            columns=(
                text("name", "Topic", "topics"),
                number("subscriptions", "Subscriptions"),
                number("producers", "Producers"),
                number("published", "Received"),
            ),
            entity=TOPICS.one(),
            related=(("/subscriptions", "topic"), ("/links", "address")),
            removal="Delete",
            removal_effect="Its subscriptions end with their messages; links to it are detached.",
            can_be_made=True,
        ),
        ConsoleList(
            path="/subscriptions",
            title="Subscriptions",
            noun="subscription",
            about="Subscriptions with the messages that wait in them.",
            columns=(
                text("identity", "Subscription", "subscriptions"),
                text("container_id", "Client id"),
                text("address", "Address"),
                text("selector", "Selector"),
                Column(attribute="durable", title="Durable", form=FLAG),
                Column(attribute="shared", title="Shared", form=FLAG),
                number("messages", "Ready"),
                number("acquired", "Unsettled"),
                number("bytes", "Size", BYTES),
                number("consumers", "Consumers"),
            ),
            entity=SUBSCRIPTIONS.one(),
            by="identity",
            removal="Delete",
            removal_effect="Its messages are lost.",
        ),
        ConsoleList(
            path="/connections",
            title="Connections",
            noun="connection",
            about="Connections of clients over AMQP.",
            columns=(
                text("identity", "No.", "connections"),
                text("name", "Client id"),
                text("user", "User"),
                text("address", "From"),
                number("links", "Links"),
                number("unsettled", "Unsettled"),
                number("oldest_unsettled_ms", "Oldest unsettled", DURATION),
                number("output_blocked_ms", "Output blocked for", DURATION),
            ),
            entity=CONNECTIONS.one(),
            by="identity",
            related=(("/links", "connection"),),
            removal="Close",
            removal_effect="Its client may connect again at once.",
        ),
        ConsoleList(
            path="/links",
            title="Links",
            noun="link",
            about="Links of clients. The role is the client's: a sender is a producer.",
            columns=(
                text("name", "Link"),
                text("role", "Role"),
                text("address", "Address"),
                text("connection", "Connection", "connections"),
                text("container_id", "Client id"),
                text("subscription", "Subscription", "subscriptions"),
                number("credit", "Credit"),
                number("unsettled", "Unsettled"),
                number("oldest_unsettled_ms", "Oldest unsettled", DURATION),
            ),
        ),
        ConsoleList(
            path="/transactions",
            title="Transactions",
            noun="transaction",
            about="Transactions that clients have declared and neither committed nor rolled back.",
            columns=(
                text("identity", "Transaction", "transactions"),
                text("connection", "Connection", "connections"),
                text("container_id", "Client id"),
                text("user", "User"),
                number("operations", "Operations"),
                number("bytes", "Memory", BYTES),
                number("remaining_ms", "Time left", DURATION),
            ),
            entity=TRANSACTIONS.one(),
            by="identity",
            removal="Roll back",
            removal_effect="Its sent messages are lost, what it acknowledged returns to its queues,"
            " and the client's session ends with an error.",
        ),
        ConsoleList(
            path="/leases",
            title="Leases",
            noun="lease",
            about="Messages that are leased, by a pipeline.",
            columns=(
                text("name", "Lease", "leases"),
                text("address", "Address"),
                text("subscription", "Subscription", "subscriptions"),
                number("batch", "Batch"),
                number("messages", "Messages"),
                number("settled", "Settled"),
                Column(attribute="expires_at_ms", title="Expires", form=TIME),
            ),
            entity=LEASES.one(),
            removal="End",
            removal_effect="Its messages return to their places, and are delivered to others.",
        ),
        ConsoleList(
            path="/sinks",
            title="Sinks",
            noun="sink",
            about="Batches that pipelines stage, to commit them exactly once.",
            columns=(
                text("name", "Sink", "sinks"),
                number("batch", "Last batch"),
                Column(attribute="committed_at_ms", title="Committed", form=TIME),
                number("stages", "Stages"),
                number("staged", "Staged"),
                number("staged_bytes", "Staged size", BYTES),
            ),
            entity=SINKS.one(),
            removal="Forget",
            removal_effect="All that it has staged is dropped, and the number of its last batch.",
        ),
        ConsoleList(
            path="/bridges",
            title="Bridges",
            noun="bridge",
            about="Bridges, which move messages to other brokers.",
            columns=(
                text("name", "Bridge", "bridges"),
                text("source", "From"),
                text("target", "To"),
                text("url", "Broker"),
                text("state", "State"),
                Column(attribute="since_ms", title="Since", form=TIME),
                number("held", "Held"),
                number("moved", "Moved"),
                text("error", "Error"),
            ),
            entity=BRIDGES.one(),
        ),
        ConsoleList(
            path="/users",
            title="Users",
            noun="user",
            about="Users that log in by a password, SCRAM or a certificate.",
            columns=(
                text("name", "User", "users"),
                text("roles", "Roles"),
                Column(attribute="enabled", title="May log in", form=FLAG),
                Column(attribute="administrator", title="Admin", form=FLAG),
                text("source", "Defined in"),
                text("changed_at", "Changed"),
            ),
            entity=USERS.one(),
            removal="Remove",
            removal_effect="Its connections end within five seconds.",
            can_be_made=True,
        ),
        ConsoleList(
            path="/logins",
            title="Failed logins",
            noun="source of failed logins",
            about="Where failed logins came from, since the start. The audit has each.",
            columns=(
                text("name", "Source", "logins"),
                number("failures", "Failures"),
                Column(attribute="last_at", title="Last", form=TIME),
                number("throttled_ms", "Refused for", DURATION),
            ),
            entity=LOGINS.one(),
            removal="Forget",
            removal_effect="Its next login is checked at once, however many have failed.",
        ),
        ConsoleList(
            path="/tokens",
            title="API tokens",
            noun="API token",
            about="Tokens by which programs log in over HTTP in the name of a user.",
            columns=(
                text("name", "Token", "tokens"),
                text("owner", "Owner"),
                text("description", "Description"),
                text("roles", "Roles"),
                text("state", "State"),
                text("expires_at", "Ends"),
                text("used_at", "Last used"),
            ),
            entity=TOKENS.one(),
            removal="Revoke",
            removal_effect="Programs that use it are refused from their next request on.",
        ),
        ConsoleList(
            path="/roles",
            title="Roles",
            noun="role",
            about="Roles of users, with the rules that name them.",
            columns=(
                text("name", "Role", "roles"),
                text("users", "Users"),
                text("rules", "Rules"),
                Column(attribute="built_in", title="Built in", form=FLAG),
            ),
            entity=ROLES.one(),
        ),
        ConsoleList(
            path="/rules",
            title="Access rules",
            noun="access rule",
            about="Rules and limits of access. A deny beats every allow.",
            columns=(
                text("name", "Rule", "rules"),
                text("effect", "Effect"),
                text("who", "Who"),
                text("can", "Can"),
                text("on", "On"),
                text("when", "When"),
            ),
            entity=RULES.one(),
        ),
        ConsoleList(
            path="/jobs",
            title="Message actions",
            noun="action",
            about="Moves, retries and deletions of messages since the broker's start.",
            columns=(
                text("id", "No."),
                text("action", "Action"),
                text("user", "User"),
                text("state", "State"),
                Column(attribute="dry_run", title="Trial", form=FLAG),
                number("done", "Messages"),
                number("skipped", "Skipped"),
                text("reason", "Reason"),
                Column(attribute="started_at", title="Started", form=TIME),
            ),
        ),
        ConsoleList(
            path="/audit",
            title="Audit",
            noun="audit record",
            about="Records of logins, refusals and changes, the newest first.",
            columns=(
                text("at", "Time"),
                number("seq", "No."),
                text("actor", "Actor"),
                text("via", "Via"),
                text("from", "From"),
                text("action", "Action"),
                text("resource", "Resource"),
                text("result", "Result"),
                text("rule", "Rule"),
            ),
        ),
        ConsoleList(
            path="/quarantined-messages",
            title="Quarantined messages",
            noun="quarantined message",
            about="Stored messages that are damaged, and are not delivered.",
            columns=(
                text("name", "No."),
                text("queue", "Queue", "queues"),
                text("reason", "Damage"),
                number("size", "Size", BYTES),
                Column(attribute="found_ms", title="Found", form=TIME),
            ),
        ),
    )
}
"""All lists, by the last part of their paths."""
