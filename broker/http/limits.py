"""Fixed limits for HTTP connections. Limits that an operator can change are in the settings."""

from typing import Final

CONNECTIONS_MAX: Final = 256
"""Maximum open connections, streaming or not: enough for the tasks of a few jobs."""

CONNECTIONS_PER_SOURCE_MAX: Final = 128
"""Maximum of these from one source (an IPv4 address or IPv6 /64): a job may run on one machine."""

LOOPBACK_RESERVE: Final = 16
"""Connections of CONNECTIONS_MAX reserved for this machine, so that administrators get in."""

HEAD_MAX_MS: Final = 5000
"""Time limit in ms for a request's head, from the connection's opening or the head's first byte."""

API_BODY_BYTES_MAX: Final = 1024 * 1024
"""Maximum bytes of the body of a request to the API."""

API_BODY_MAX_S: Final = 30
"""Time limit in s for the body of a request to the API."""

API_REQUESTS_MAX: Final = 64
"""Maximum requests to the API that are carried out at a time."""

API_REQUESTS_PER_USER_MAX: Final = 32
"""Maximum of these from one user, so that another one gets an answer."""

EVENT_STREAMS_MAX: Final = 64
"""Maximum streams of server-sent events at a time, those of the console included."""

EVENT_STREAMS_PER_USER_MAX: Final = 32
"""Maximum of these of one user, so that another one sees what happens."""

SNAPSHOT_BYTES_MAX: Final = 256 * 1024
"""Maximum bytes of one snapshot. A client that does not read it gets no further one meanwhile."""

JMS_PROPERTIES_MAX: Final = 64
"""Maximum application properties of a message over JMS over HTTP, sent or received."""

JMS_FIELDS_BYTES_MAX: Final = 8 * 1024
"""Maximum bytes of all JMS headers, settings and properties of a message, names and values."""

JMS_BODY_BYTES_MAX: Final = 1024 * 1024
"""Maximum bytes of the body of a posted message: it is in memory as a whole."""

JMS_BODY_MAX_MS: Final = 30_000
"""Time limit in ms for a posted body: a client must not keep a connection by sending slowly."""

JMS_WAIT_MAX_S: Final = 60
"""Maximum seconds for which a request waits for a message or a reply."""

JMS_WAITING_MAX: Final = 64
"""Maximum requests that wait or browse at the same time: others need connections, too."""

JMS_WAITING_PER_USER_MAX: Final = 32
"""Maximum of these of one user."""

JMS_RECEIPTS_PER_USER_MAX: Final = 1000
"""Maximum receipts of one user: each keeps a message and a consumer in memory."""

JMS_LOCK_MS: Final = 30_000
"""Time in ms for which a receipt holds its message, unless it is renewed."""

JMS_BROWSED_MAX: Final = 100
"""Maximum messages in one response to a browser."""

JMS_DECODED_BYTES_MAX: Final = 8 * 1024
"""Maximum bytes of a message whose body is decoded: more values would take the event loop more than
5 ms. The text or the bytes of a larger one are passed on."""

JMS_SHOWN_BYTES_MAX: Final = 64 * 1024
"""Maximum bytes of a body that a browser is shown."""

XML_BYTES_MAX: Final = 4 * 1024
"""Maximum bytes of an envelope in which its root element is looked for."""

AUDIT_REPORT_BYTES_MAX: Final = 1024 * 1024
"""Maximum bytes of the result of a pipeline's audit that the console shows."""

CONSOLE_SESSIONS_MAX: Final = 1000
"""Maximum sessions of the console, 1 KiB each. The one that was used longest ago ends first."""

CONSOLE_SESSIONS_PER_USER_MAX: Final = 32
"""Maximum of these of one user, so that one does not end the sessions of others."""

CONSOLE_IDLE_MS: Final = 30 * 60_000
"""Time in ms after which a session that is not used ends."""

CONSOLE_SESSION_MAX_MS: Final = 12 * 3_600_000
"""Time in ms after which a session ends, however much it is used."""

CONSOLE_FORM_BYTES_MAX: Final = 64 * 1024
"""Maximum bytes of a form that a browser sends to the console."""

CONSOLE_FORM_MAX_S: Final = 30
"""Time limit in s for such a form."""

CONSOLE_FORM_FIELDS_MAX: Final = 1000
"""Maximum fields of a form: an operator chooses at most a page of messages."""
