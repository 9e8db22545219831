"""The kinds of lines of the log, each with a code that stays when its text changes.

`docs/reference/log.md` is made of them (`config/references.py`).
"""

from __future__ import annotations

from typing import Final, final

INFO: Final = "info"
WARNING: Final = "warning"
ERROR: Final = "error"


@final
class Notice:
    """A line of the log about something in the broker, not about one connection."""

    def __init__(self, event: LogEvent, text: str) -> None:
        self.event: Final = event
        self.text: Final = text


@final
class LogEvent:
    """A kind of line. `title` is its text, or of notices its subject; `remedy` what to do, if any.

    A code is an area and a number. It is never given to another kind of line.
    """

    def __init__(self, code: str, title: str, remedy: str = "", *, level: str = WARNING) -> None:
        self.code: Final = code
        self.level: Final = level
        self.title: Final = title
        self.remedy: Final = remedy

    def notice(self, text: str) -> Notice:
        """Return a line of this kind."""
        return Notice(self, text)


# -- the broker

STARTING: Final = LogEvent("BRK-001", "broker starting", level=INFO)
READY: Final = LogEvent("BRK-002", "broker ready", level=INFO)
STOPPING: Final = LogEvent("BRK-003", "broker stopping", level=INFO)
STOPPED: Final = LogEvent("BRK-004", "broker stopped", level=INFO)
STORE_FAILED: Final = LogEvent(
    "BRK-005",
    "broker stopping: its store failed",
    "Mend the store that `reason` names, then start the broker: what was acknowledged is there.",
    level=ERROR,
)
DRAIN_ANNOUNCED: Final = LogEvent(
    "BRK-011", "broker draining: it accepts no connections", level=INFO
)
DRAIN_FINISHING: Final = LogEvent(
    "BRK-012", "broker draining: it takes no new messages, and delivers none", level=INFO
)
DRAINED: Final = LogEvent("BRK-013", "broker drained: no client has unfinished work", level=INFO)
DRAINED_TOO_SOON: Final = LogEvent(
    "BRK-014",
    "broker drained, but clients have not finished: unsettled messages return to their queues,"
    " and open transactions are rolled back",
    "Give the drain more time (`timeout_ms` of `[drain]`), or find out what the clients wait for.",
)
STANDING_BY: Final = LogEvent("BRK-015", "broker standing by", level=INFO)
NOT_LEADING: Final = LogEvent(
    "BRK-016",
    "broker cannot stand by now, and tries again",
    "Mend what `reason` names; until then this broker takes over from none.",
)
FROZEN: Final = LogEvent(
    "BRK-017",
    "leader frozen",
    "See whether the database of the store, and the way to it, work.",
)
THAWED: Final = LogEvent("BRK-018", "leader active again")
SHARD_ENDED: Final = LogEvent(
    "BRK-019",
    "a shard has ended, and is started again",
    "Find the reason of `status` in the lines of that shard, unless it was stopped on purpose.",
)
SHARD_NOT_STARTED: Final = LogEvent(
    "BRK-020",
    "a shard cannot start: all of them stop",
    "Mend what that shard has written ahead of this line: a setting, its store or its port.",
    level=ERROR,
)
MANAGER_NOT_TOLD: Final = LogEvent(
    "BRK-006",
    "the service manager was not told",
    "Check `NotifyAccess` of the unit; the broker goes on without its service manager.",
)
INTERNAL_ERROR: Final = LogEvent(
    "BRK-007",
    "internal error",
    "Report it with the traceback. The connection was closed; the broker goes on.",
    level=ERROR,
)
MEMORY_SHORT: Final = LogEvent(
    "BRK-008",
    "memory is short, producers wait",
    "`jms-broker store info` shows what holds the memory: let consumers catch up, or raise"
    " `memory_max`.",
)
MEMORY_AGAIN: Final = LogEvent("BRK-009", "there is memory again, producers go on")
LINES_LEFT_OUT: Final = LogEvent(
    "BRK-010",
    "lines left out: an address caused more than {} in a second",
    "Find out what the clients at `address` do; the audit has their logins and refusals.",
)
BRIDGE_CONNECTED: Final = LogEvent("BRK-025", "a bridge is connected", level=INFO)
BRIDGE_WAITS: Final = LogEvent(
    "BRK-026",
    "a bridge cannot move messages now: it tries again",
    "Mend what the text names: the other broker, its login, or its queue. No message is lost: the"
    " bridge goes on by itself. `jms-broker bridge list` shows its state.",
)
BRIDGE_PAUSED: Final = LogEvent("BRK-027", "a bridge was paused, or goes on", level=INFO)
BRIDGE_LEFT_OUT: Final = LogEvent(
    "BRK-028",
    "a bridge did not pass on some messages",
    "Those that the other broker refused for good are dead letters. Those of a subscription"
    " that had passed the bridge before, or eight bridges, were dropped: look for a loop.",
)
BRIDGE_RENEWED: Final = LogEvent(
    "BRK-029",
    "a bridge begins a new sequence of batches",
    "This broker's store is older than what the bridge has sent: was it restored from a backup?"
    " Messages of before may come to the other broker a second time.",
)

# -- connections

OPENED: Final = LogEvent("CON-001", "connection opened", level=INFO)
CLOSED: Final = LogEvent("CON-002", "connection closed", level=INFO)
REFUSED: Final = LogEvent(
    "CON-003", "connection refused", "`reason` says which login, right or limit was missing."
)
CUT: Final = LogEvent(
    "CON-004",
    "connection cut: its client read nothing of what waited for it; what it had not settled"
    " returns to its queues",
    "Find out why the client does not read; `stall_timeout_ms` is how long it may not.",
)
CLOSED_FOR_MEMORY: Final = LogEvent(
    "CON-005",
    "a connection is closed because the broker is out of memory",
    "Let that client settle sooner, use smaller transactions or less credit; or raise"
    " `memory_max`.",
)
NO_ROOM: Final = LogEvent(
    "CON-006",
    "a connection was closed for lack of room",
    "Raise the limit that the line names, or find out which clients do not log in.",
)
NOT_ACCEPTED: Final = LogEvent(
    "CON-007",
    "a listener refused connections: no WebSocket, no PROXY header, or a failed TLS handshake",
    "The line says what was wrong. Check the client's URL, its certificates, or the proxy.",
)
TRANSACTION_GIVEN_UP: Final = LogEvent(
    "TXN-001",
    "the largest transaction can only be rolled back",
    "Commit more often, or raise `memory_max`.",
)

# -- logins and rights

NOT_RENEWED: Final = LogEvent(
    "SAS-001", "login not renewed", "`reason` says what was wrong with the client's new token."
)
SPRAYED: Final = LogEvent(
    "SAS-002",
    "many logins of one user have failed within an hour",
    "The audit has their addresses (`jms-broker audit show`). Failed logins lock nobody out.",
)
KEYS_NOT_READ: Final = LogEvent(
    "SAS-003",
    "the keys of tokens were not read",
    "Check `jwks` and `jwks_ca` of `[oauth]`; the keys that the broker has stay in use.",
)
SCRAM_NOT_WRITTEN: Final = LogEvent(
    "SAS-004",
    "no verifiers for SCRAM were written",
    "Let the broker write the users file, or use a store that keeps users.",
)
PASSWORD_IN_CLEAR: Final = LogEvent(
    "SAS-005",
    "a password over HTTP was refused because others could have read it",
    'Set `http.tls = true`, or `plain = "always"` where the network is trusted.',
)
USER_DAMAGED: Final = LogEvent(
    "SAS-006", "a user in the store is damaged", "Give the user a new password, or remove it."
)
DENIED: Final = LogEvent(
    "ACL-001",
    "access denied",
    "`refusal` names the right and the rule; `jms-broker acl explain` shows how it was decided.",
)
LIMITED: Final = LogEvent(
    "ACL-002",
    "limit of a user reached: raise it in the rules file (acl_file), or find out what the user"
    " holds",
    "`refusal` names the limit.",
)

# -- TLS

CERTIFICATES_USED: Final = LogEvent("TLS-001", "new certificates are in use")
CERTIFICATES_REFUSED: Final = LogEvent(
    "TLS-002",
    "the former certificates stay in use",
    "The line says what is wrong with the new files: `jms-broker tls check` does, too.",
)
CERTIFICATE_ENDS: Final = LogEvent(
    "TLS-003", "a certificate ends soon", "Replace the file: the broker reads it anew."
)

# -- queues, topics, subscriptions

UNUSED_DELETED: Final = LogEvent("QUE-001", "unused queues or topics were deleted")
MESSAGES_UNREADABLE: Final = LogEvent(
    "QUE-002",
    "messages could not be read, and are left out",
    "They are in the store's quarantine: `jms-broker store quarantined` shows them.",
)
DISCARDED: Final = LogEvent(
    "QUE-003",
    "a message was discarded",
    "Set `dead_letter` or `expiry` for its queue, if such messages are to be kept.",
)
HELD_BACK: Final = LogEvent(
    "QUE-004",
    "a message could not be moved, and is held back",
    "Make room in the queue that the line names, or create it; `jms-broker message list --held`"
    " shows the messages.",
)
OVER_LIMIT: Final = LogEvent(
    "QUE-005",
    "a queue takes moved messages beyond its limit",
    "Consume what it has, or raise `max_messages` or `max_bytes`.",
)
HELD_MOVED: Final = LogEvent("QUE-006", "messages that were held back are moved")
REPORTS_LEFT_OUT: Final = LogEvent(
    "QUE-007",
    "more messages were discarded, held back, not selected or moved than the log has lines for",
)
QUARANTINED: Final = LogEvent(
    "QUE-008",
    "a message is quarantined: its body is damaged",
    "`jms-broker store quarantined` shows it; restore a backup if it is needed.",
)
NAME_MERGED: Final = LogEvent("QUE-009", "a node of an older broker is merged or deleted")
NAME_KEPT: Final = LogEvent(
    "QUE-010",
    "a node of an older broker keeps its name, which has a prefix",
    "The next start tries again; the line says what was in the way.",
)
SELECTOR_GIVEN_UP: Final = LogEvent(
    "QUE-011",
    "subscriptions did not get a message: their selector takes too many steps on it",
    "Make the selector simpler, or what it reads shorter: [Limits](../limits.md) has the numbers.",
)
SUBSCRIPTION_ADOPTED: Final = LogEvent("SUB-001", "a subscription without an owner has one now")
SUBSCRIPTION_ANEW: Final = LogEvent(
    "SUB-002",
    "a subscription starts anew, and its messages are dropped",
    "Its client has changed the topic or the selector: JMS demands it.",
)
TERMINUS_DROPPED: Final = LogEvent(
    "BRK-021",
    "a suspended link can no longer be resumed: there was no room for what it had unsettled",
    "Its messages wait again. Give the broker more memory (`memory_max`), or lower `resume_max_s`.",
)
LEASE_RUN_OUT: Final = LogEvent(
    "LSE-001", "a lease has run out", "Its program renews too late: give the lease more time."
)
LEASE_DAMAGED: Final = LogEvent(
    "LSE-002",
    "a lease, or messages of it, could not be read",
    "Its messages wait again; its program takes a new lease.",
)
STAGE_DROPPED: Final = LogEvent(
    "SNK-001",
    "the stage of a sink was never committed",
    "The pipeline did not end its batch: let it run again.",
)

# -- the store

STORE_NOTICE: Final = LogEvent(
    "STO-001", "a notice of the store", "The line says what is to be done."
)
DAMAGED_MESSAGES: Final = LogEvent(
    "STO-002",
    "stored messages are damaged, and will not be delivered",
    "`jms-broker store quarantined` shows them.",
)
DISK_SHORT: Final = LogEvent(
    "STO-003",
    "the disk of the store has little room: producers wait",
    "Make room on that disk, or consume; `disk_free_min` is the limit.",
)
STORE_AWAY: Final = LogEvent(
    "STO-004", "the store is away: producers wait", "Start the database, or mend the network."
)
STORE_AGAIN: Final = LogEvent("STO-005", "the store takes messages again")
DISK_FULL: Final = LogEvent(
    "STO-006", "the disk of the store is full", "Make room on that disk; consumers go on."
)
DISK_AGAIN: Final = LogEvent("STO-007", "the disk of the store has room again")

# -- management and settings

MANAGED: Final = LogEvent("MGT-001", "management change", level=INFO)
USER_CHANGED: Final = LogEvent("MGT-002", "an administrator has changed a user")
IMPORTED: Final = LogEvent("MGT-003", "an administrator has imported definitions")
SECRETS_EXPORTED: Final = LogEvent(
    "MGT-004", "an administrator has exported definitions with the verifiers of passwords"
)
SETTINGS_RELOADED: Final = LogEvent("CFG-001", "settings reloaded", level=INFO)
RELOADED_CONNECTIONS: Final = LogEvent(
    "CFG-002", "these settings count for new connections and links", level=INFO
)
RELOADED_NODES: Final = LogEvent(
    "CFG-003",
    "these settings count for queues and topics that are made from now on",
    level=INFO,
)
RESTART_NEEDED: Final = LogEvent(
    "CFG-004", "changed settings need a restart of the broker", "Restart it when it suits."
)
NOT_RELOADED: Final = LogEvent(
    "CFG-005",
    "settings not reloaded, the old ones stay",
    "`reason` names the setting; `jms-broker reload --dry-run` tries again without effect.",
    level=ERROR,
)

# -- HTTP and the audit

BODY_BROKEN: Final = LogEvent(
    "HTP-001", "a message could not be sent over HTTP", "Its body is damaged in the store."
)
STREAM_BROKEN: Final = LogEvent("HTP-002", "a stream over HTTP broke off")
HTTP_CROWDED: Final = LogEvent(
    "HTP-003",
    "connections of HTTP were dropped for others",
    "Find out what the clients at that address do.",
)
AUDIT_HEAD: Final = LogEvent("AUD-001", "audit head", level=INFO)
AUDIT_NOTICE: Final = LogEvent(
    "AUD-002",
    "audit records were damaged, or could not be written",
    "Make room in the folder of the audit, or let the broker write there.",
)
AUDIT_MISSING: Final = LogEvent(
    "AUD-003",
    "there are no audit records: the store has no folder on this machine, and none is set",
    "Name a folder of this broker alone as `audit.directory`, or set `audit.enabled = false`.",
)

# -- traces

SPANS_LOST: Final = LogEvent(
    "TRC-001",
    "spans of traced messages were lost",
    "Start the collector that `tracing.endpoint` names, or correct the setting. The text has the"
    " collector's reason; it comes once a minute at most.",
)

LOG_EVENTS: Final = [each for each in list(globals().values()) if isinstance(each, LogEvent)]
"""All kinds, in the order of their declaration."""
