"""The endpoints of the broker as a whole: state, settings, definitions, store and records."""

from __future__ import annotations

from broker.http.api.changes import back_up, read_log_level
from broker.http.api.endpoint import GET, POST, PUT, Endpoint
from broker.http.api.entities import (
    CURSOR,
    LIMIT,
    named,
    performed,
    stated,
    whole,
)
from broker.http.api.event_stream import SnapshotStreams
from broker.http.api.jobs import Jobs
from broker.http.api.kinds import MEMBERS, flag, text
from broker.http.api.models import (
    AlarmRecord,
    AllSettings,
    AuditRecord,
    BackupBody,
    BoundsRecord,
    DefinitionsBody,
    DefinitionsKind,
    DefinitionsPage,
    ImportRecord,
    ListenerRecord,
    LogLevelBody,
    LogLevelRecord,
    Nothing,
    ReloadRecord,
)
from broker.http.api.parameters import NUMBER, TEXTS, Parameter
from broker.http.api.state import list_alarms, list_listeners
from broker.http.open_streams import MEDIA_TYPE
from broker.management.audit_records import AUDIT_RECORD
from broker.management.backups import BACKUP, BackupRecord
from broker.management.configuration import SETTINGS
from broker.management.definitions import DEFINITIONS, EXPORTED_MAX
from broker.management.events import EVENTS
from broker.management.overview import BROKER, BrokerRecord
from broker.management.page import OFFSET_MAX
from broker.management.response import ACCEPTED
from broker.management.stores import QUARANTINED, STORE, QuarantinedRecord, StoreRecord


def broker_endpoints(jobs: Jobs) -> list[Endpoint]:
    """Return the endpoints of the broker; the progress of `jobs` is a part of its state."""
    return [*_state(jobs), *_members(), *_configuration(), *_definitions(), *_stores(), *_records()]


def _state(jobs: Jobs) -> list[Endpoint]:
    return [
        Endpoint(
            method=GET,
            path="/overview",
            summary="Read what the broker is and how much it holds",
            right="view management:metrics",
            work=performed(BROKER, "READ"),
            result=BrokerRecord,
        ),
        Endpoint(
            method=GET,
            path="/alarms",
            summary="List all alarms, and whether each of them holds now",
            right="view management:metrics",
            work=list_alarms,
            result=AlarmRecord,
            is_list=True,
        ),
        Endpoint(
            method=GET,
            path="/listeners",
            summary="List listeners with their connections, and the end of their certificates",
            right="view management:metrics",
            work=list_listeners,
            result=ListenerRecord,
            is_list=True,
        ),
        Endpoint(
            method=GET,
            path="/events",
            summary="Stream a snapshot of the broker each second, as server-sent events",
            right="view management:metrics and messages",
            work=SnapshotStreams(jobs.list).open,
            parameters=(
                Parameter(
                    name="topics", type=TEXTS, description="`broker`, `jobs`; all if left out"
                ),
                Parameter(name="since", type=NUMBER, description="only snapshots after this id"),
                Parameter(
                    name="limit",
                    type=NUMBER,
                    low=1,
                    description="end after so many snapshots; it has no end if left out",
                ),
            ),
            media_types=(MEDIA_TYPE,),
        ),
    ]


def _members() -> list[Endpoint]:
    return [
        MEMBERS.listing(),
        MEMBERS.reading(),
        MEMBERS.removal("DELETE", "Forget a member that is not up: clients are not sent there"),
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
        Endpoint(
            method=GET,
            path="/log-level",
            summary="Read the level of the log",
            right="view management:config",
            work=read_log_level,
            result=LogLevelRecord,
        ),
        Endpoint(
            method=PUT,
            path="/log-level",
            summary="Change the level of the log until the settings are read again",
            right="edit management:config",
            work=stated(SETTINGS, "SET-LOG-LEVEL", "broker"),
            body=LogLevelBody,
            result=LogLevelRecord,
        ),
    ]


def _definitions() -> list[Endpoint]:
    return [
        Endpoint(
            method=GET,
            path="/definitions",
            summary="List the kinds of definitions",
            right="view management:definitions",
            work=whole(DEFINITIONS),
            result=DefinitionsKind,
            is_list=True,
        ),
        Endpoint(
            method=GET,
            path="/definitions/{name:path}",
            summary="Export definitions of one kind, without secrets",
            right="view management:definitions",
            work=performed(DEFINITIONS, "EXPORT", named),
            parameters=(
                Parameter(
                    name="offset",
                    type=NUMBER,
                    high=OFFSET_MAX,
                    description="`next` of the page before",
                ),
                Parameter(
                    name="limit",
                    type=NUMBER,
                    low=1,
                    high=EXPORTED_MAX,
                    argument="count",
                    description=f"definitions on a page, {EXPORTED_MAX} if left out",
                ),
            ),
            result=DefinitionsPage,
        ),
        Endpoint(
            method=POST,
            path="/definitions/{name:path}",
            summary="Import definitions of one kind: add them, and change those that differ",
            right="edit management:definitions",
            work=stated(DEFINITIONS, "IMPORT", named),
            body=DefinitionsBody,
            result=ImportRecord,
        ),
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
