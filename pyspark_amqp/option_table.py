"""The table of the options of the data source `amqp`: values, uses, and what each does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pyspark_amqp.option_kinds import (
    Choice,
    Duration,
    Kind,
    Positions,
    Text,
    Truth,
    Urls,
    Whole,
)


class Use(Enum):
    """The uses of the data source: to read a batch, to read a stream, to write."""

    BATCH = "read"
    STREAM = "readStream"
    SINK = "write"


READS: Final = frozenset({Use.BATCH, Use.STREAM})
ALL: Final = frozenset(Use)
STREAM: Final = frozenset({Use.STREAM})
SINK: Final = frozenset({Use.SINK})
BATCH: Final = frozenset({Use.BATCH})


@dataclass(frozen=True)
class Option:
    """One row of the table. `default` is text, as a user would give it; None means no default."""

    name: str
    kind: Kind
    default: str | None
    uses: frozenset[Use]
    about: str


_NAME: Final = Text("a name of at most 255 characters", most=255)
_PATH: Final = Text("the path of a file")

TABLE: Final = (
    Option(
        "url",
        Urls("amqp", "amqps", several=True),
        "amqp://localhost:5672",
        ALL,
        "The broker. Of several, the query uses the first that answers, and another if it is lost.",
    ),
    Option(
        "managementUrl",
        Urls("http", "https", several=False),
        None,
        READS,
        "The broker's HTTP port: rows then come as Arrow, faster than by AMQP.",
    ),
    Option("username", Text(), None, ALL, "A user of the broker with the rights for it."),
    Option("password", Text(), None, ALL, "The user's password; Spark does not show it."),
    Option(
        "tokenFile",
        _PATH,
        None,
        ALL,
        "A file with a token of the user, in place of a password. It is read again at each login.",
    ),
    Option(
        "saslMechanism",
        Choice("ANONYMOUS", "PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512", "EXTERNAL"),
        None,
        ALL,
        "The SASL mechanism. Default: the strongest that both sides know.",
    ),
    Option("tls.caFile", _PATH, None, ALL, "The trusted authorities (amqps, https)."),
    Option("tls.certFile", _PATH, None, ALL, "The client's certificate, if it is asked for."),
    Option("tls.keyFile", _PATH, None, ALL, "Its key."),
    Option("tls.keyPasswordFile", _PATH, None, ALL, "A file with nothing but the key's password."),
    Option("address", Text("an address"), None, ALL, "The queue; for the sink, a queue or topic."),
    Option(
        "createAddress",
        Truth(),
        "false",
        READS,
        "Whether a queue that does not exist is created; else it is an error.",
    ),
    Option(
        "subscription",
        Text("durable/CLIENT/NAME as the broker lists it, or NAME beside the option topic"),
        None,
        READS,
        "A durable subscription, in place of a queue.",
    ),
    Option(
        "topic",
        Text("an address"),
        None,
        STREAM,
        "Its topic. The subscription is created if it does not exist: shared, durable, global.",
    ),
    Option("selector", Text("a JMS selector"), None, READS, "Only messages that match it."),
    Option(
        "mode",
        Choice("lease", "browse", "events"),
        None,
        READS,
        "lease takes messages from the queue, each once (streams); browse reads them and leaves "
        "them there (batch); events reads the event log.",
    ),
    Option("lease", _NAME, None, STREAM, "The lease's id. Default: one for each query."),
    Option(
        "startingPosition",
        Positions("earliest", "latest"),
        "earliest",
        READS,
        "browse and events: the first position (id, in the event log) that is read, or its time.",
    ),
    Option(
        "endingPosition",
        Positions("latest"),
        "latest",
        BATCH,
        "The first position (id) or time that is no longer read.",
    ),
    Option("kind", Text("a kind of event"), None, READS, "events: only events of this kind."),
    Option(
        "storeUrl",
        Text("postgresql://…, sqlite:///PATH"),
        None,
        READS,
        "events: the store that ADBC reads in place of the broker: a PostgreSQL database, the "
        "SQLite file of a stopped broker, or a backup.",
    ),
    Option(
        "maxMessagesPerTrigger",
        Whole(1, 100_000_000),
        "10000",
        STREAM,
        "Maximum rows in a micro-batch.",
    ),
    Option("maxBytesPerTrigger", Whole(1), None, STREAM, "Maximum bytes in a micro-batch."),
    Option(
        "minMessagesPerTrigger",
        Whole(1, 100_000_000),
        None,
        STREAM,
        "Number of messages for which a micro-batch waits, for maxTriggerDelay at most.",
    ),
    Option(
        "maxTriggerDelay",
        Duration(),
        "15m",
        STREAM,
        "Maximum delay by minMessagesPerTrigger.",
    ),
    Option("numPartitions", Whole(1, 256), "4", READS, "Parts read at the same time."),
    Option(
        "partitionBy",
        Choice("group"),
        "group",
        STREAM,
        "All messages of a JMSXGroupID are in one partition, in their order.",
    ),
    Option(
        "leaseTtl",
        Duration(never=True),
        "1h",
        STREAM,
        "Time for which the broker keeps the messages of a query that has stopped.",
    ),
    Option(
        "failOnLeaseLoss",
        Truth(),
        "true",
        STREAM,
        "Whether a query whose lease has expired ends with an error; else it gets a new lease.",
    ),
    Option(
        "pollTimeoutMs",
        Whole(0, 30_000),
        "500",
        STREAM,
        "Time for which a query waits for a first message before it asks again.",
    ),
    Option(
        "failOnDataLoss",
        Truth(),
        "true",
        READS,
        "events: whether the query fails if rows were deleted before it could read them.",
    ),
    Option("includeBody", Truth(), "true", READS, "Whether the columns of bodies are filled."),
    Option("includeRaw", Truth(), "false", READS, "Whether `amqp`, the encoded message, is."),
    Option(
        "propertiesAs",
        Choice("typed", "json", "string"),
        "typed",
        READS,
        "The form of properties, and of bodies that are maps or streams: with types, JSON, "
        "or texts.",
    ),
    Option(
        "pushdown",
        Truth(),
        "false",
        BATCH,
        "Whether the broker evaluates conditions, as a selector; needs "
        "spark.sql.python.filterPushdown.enabled=true.",
    ),
    Option(
        "delivery",
        Choice("staged", "at-least-once"),
        "staged",
        SINK,
        "staged: consumers get all messages of a batch at one moment, each once; at-least-once: "
        "works with any broker, and a repeated batch repeats its messages.",
    ),
    Option(
        "bodyType",
        Choice("message", "text", "bytes", "map", "stream", "object"),
        None,
        SINK,
        "The kind of message if the rows have no column bodyType.",
    ),
    Option(
        "replay",
        Choice("none", "raw"),
        "none",
        SINK,
        "raw sends the bytes of the column `amqp`.",
    ),
    Option(
        "amqp.virtualHost",
        Text(),
        None,
        ALL,
        "The host name in the open frame, if not the url's.",
    ),
    Option(
        "amqp.heartbeat",
        Duration(),
        None,
        ALL,
        "Time without a frame that ends the connection.",
    ),
    Option(
        "amqp.timeout",
        Duration(),
        "30s",
        ALL,
        "Time within which the broker must answer, and for which a query goes on without it.",
    ),
)
BY_NAME: Final = {option.name.lower(): option for option in TABLE}

SECRETS: Final = frozenset({"password", "url", "managementUrl", "storeUrl"})
"""Options whose values are never shown: they are, or may contain, a password."""
