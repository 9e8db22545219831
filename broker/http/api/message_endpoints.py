"""The endpoints of messages: lists, single messages, and actions on many."""

from __future__ import annotations

from typing import Final

from broker.http.api import messages
from broker.http.api.dead_letters import list_dead_letters
from broker.http.api.endpoint import DELETE, GET, POST, Endpoint
from broker.http.api.entities import AFTER, LIMIT
from broker.http.api.jobs import Jobs
from broker.http.api.kinds import text
from broker.http.api.message_life import read_life
from broker.http.api.messages import BODIES
from broker.http.api.models import (
    DeadLetterQueueRecord,
    JobRecord,
    MessageActionBody,
    MessageContent,
    MessageLifeRecord,
)
from broker.http.api.parameters import NUMBER, Parameter
from broker.management.messages import MessageRecord
from broker.management.response import ACCEPTED, NO_CONTENT

PLACE: Final = (
    text("queue", "the queue of the messages; or else `subscription`"),
    text("subscription", "the identity of the subscription whose messages these are"),
)
OF_ID: Final = "/{id:int}"
SELECTOR: Final = text("selector", "only messages that match this JMS selector")


def message_endpoints(jobs: Jobs) -> list[Endpoint]:
    """Return the endpoints of messages; `jobs` are the actions of this broker."""
    return [*_messages(), *_scheduled(), *_dead_letters(), *_actions(jobs)]


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
            media_types=BODIES,
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


def _dead_letters() -> list[Endpoint]:
    return [
        Endpoint(
            method=GET,
            path="/dead-letters",
            summary="List dead-letter queues with the sources and reasons of their messages",
            right="view management:messages",
            work=list_dead_letters,
            result=DeadLetterQueueRecord,
            is_list=True,
        ),
        Endpoint(
            method=GET,
            path="/message-lives/{name:path}",
            summary="Read the events of one message, by its message-id, from the event log",
            right="view management:events",
            work=read_life,
            parameters=(
                Parameter(
                    name="address", required=True, description="the queue or topic of the message"
                ),
                Parameter(
                    name="created_at",
                    type=NUMBER,
                    description="its creation-time, from which the search begins",
                ),
            ),
            result=MessageLifeRecord,
        ),
    ]


def _actions(jobs: Jobs) -> list[Endpoint]:
    return [
        Endpoint(
            method=POST,
            path="/message-actions",
            summary="Move, copy, retry, delete messages, or deliver them early, beside other work",
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
