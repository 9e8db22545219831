"""Jobs: actions on many messages, in portions, each of which is committed by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count as numbers
from typing import Final, Literal

from broker.http.api.endpoint import ROOT, Call, CallResult, query_of
from broker.http.api.models import JobRecord, MessageActionBody
from broker.http.api.problems import TOO_MANY, Failure
from broker.links.rights_review import LOGIN_ENDED
from broker.management.entity import VIEW
from broker.management.messages import MESSAGE
from broker.management.request import FORBIDDEN, NOT_FOUND, Request
from broker.management.response import ACCEPTED, Response
from broker.security.resources import MANAGEMENT, Resource

MESSAGES: Final = Resource(MANAGEMENT, "messages")

RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"
STOPPED: Final = "stopped"

RUNNING_MAX: Final = 8
"""Maximum jobs that run at a time."""

KEPT_MAX: Final = 256
"""Jobs that are remembered, the oldest of those that have ended are forgotten first."""

PORTION: Final = 500
"""Messages that one portion examines or changes, at most, and that are committed together."""

COUNTED: Final = 50
"""Messages that one portion of a dry run counts: they are shown to be counted, which takes longer
than to move them."""

DONE_COUNTS: Final = ("moved", "copied", "deleted", "delivered")
"""The parts of responses that count what has been done."""

MISSING_MAX: Final = 100
"""Ids of missing messages that a job names."""


@dataclass(kw_only=True)
class Job:
    """An action on messages, and how far it has come."""

    id: str
    action: MessageActionBody
    user: str
    started_at: int
    state: Literal["running", "done", "failed", "stopped"] = RUNNING
    done: int = 0
    skipped: int = 0
    missing: list[str] = field(default_factory=list)
    reason: str | None = None
    ended_at: int | None = None

    def record(self) -> JobRecord:
        """Return what clients see of it."""
        return JobRecord(
            id=self.id,
            action=self.action.action,
            user=self.user,
            state=self.state,
            dry_run=self.action.dry_run,
            done=self.done,
            skipped=self.skipped,
            missing=self.missing,
            reason=self.reason,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )

    def requests(self) -> Iterator[Request]:
        """Yield the requests for messages that are named by their ids."""
        ids = (self.action.ids or [])[: self.action.limit]
        for first in range(0, len(ids), PORTION):
            yield self._request({"identities": ids[first : first + PORTION]})

    def scanning(self, after: str | None) -> Request:
        """Return the request for the messages that a scan finds behind `after`."""
        action, left = self.action, self.action.limit - self.done
        arguments: dict[str, object] = {"scan": PORTION}
        if action.selector:
            arguments["selector"] = action.selector
        elif not action.dry_run:
            arguments["all"] = True
        if after is not None:
            arguments["after"] = after
        if action.dry_run:
            arguments |= {"attributeNames": ["identity"], **action.place.arguments()}
            return query_of(MESSAGE, arguments, count=min(COUNTED, left))
        return self._request({**arguments, "count": min(PORTION, left)})

    def _request(self, arguments: Mapping[str, object]) -> Request:
        action = self.action
        said = {**arguments, **action.place.arguments()}
        if action.to is not None:
            said["to"] = action.to
        if action.to_type is not None:
            said["to_type"] = action.to_type
        return Request(operation=action.action.upper(), type=MESSAGE, arguments=said)

    def took(self, response: Response) -> str | None:
        """Count what a portion has done; return where the next one begins, None at the end."""
        body = response.body
        assert isinstance(body, Mapping)
        if self.action.dry_run:
            found = body["results"]
            assert isinstance(found, list)
            self.done += len(found)
            return _text(body["next"])
        self.done += sum(_number(body.get(each)) for each in DONE_COUNTS)
        self.skipped += _number(body.get("skipped"))
        missing = body["missing"]
        assert isinstance(missing, list)
        self.missing += missing[: MISSING_MAX - len(self.missing)]
        self.reason = self.reason or _text(body.get("reason"))
        stopped = _text(body.get("stopped"))
        if stopped is not None:
            self.state, self.reason = STOPPED, stopped
        return _text(body["next"])


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


async def _portions(job: Job, call: Call) -> AsyncGenerator[None, None]:
    """Carry out a job, and yield after each portion. Raise Failure if one fails.

    Each portion is a request of who the client is by then.
    """
    if job.action.ids:
        for request in job.requests():
            job.took(await _now(call).ask(request))
            yield
            if job.state != RUNNING:
                return
        return
    after: str | None = None
    while job.done < job.action.limit:
        after = job.took(await _now(call).ask(job.scanning(after)))
        yield
        if after is None or job.state != RUNNING:
            return


def _now(call: Call) -> Call:
    """Return a call of who its client is by now. Raise Failure if the login has ended."""
    current = call.now()
    if current is None:
        raise Failure(FORBIDDEN, LOGIN_ENDED)
    return current


async def _run(job: Job, call: Call, portions: AsyncGenerator[None, None]) -> None:
    """Carry out the rest of a job."""
    try:
        async for _ in portions:
            await asyncio.sleep(0)  # others have their turn, even if the store never waits
        if job.state == RUNNING:
            job.state = DONE
    except Failure as failure:
        job.reason = str(failure)
    finally:
        if job.state == RUNNING:
            job.state = FAILED
            job.reason = job.reason or "the broker stopped"
        job.ended_at = int(call.site.container.clock.wall_ms())


class Jobs:
    """The jobs of one broker since its start."""

    def __init__(self) -> None:
        self._jobs: Final[dict[str, Job]] = {}
        self._numbers: Final = numbers(1)

    def running(self) -> int:
        """Return the number of jobs that run now."""
        return sum(job.state == RUNNING for job in self._jobs.values())

    async def begin(self, call: Call) -> CallResult:
        """Begin an action. Its first portion is awaited, so that a wrong request fails at once."""
        if self.running() >= RUNNING_MAX:
            raise Failure(TOO_MANY, f"{RUNNING_MAX} actions run already; ask again later")
        job = Job(
            id=str(next(self._numbers)),
            action=call.read(MessageActionBody),
            user=call.caller.identity.user,
            started_at=int(call.site.container.clock.wall_ms()),
        )
        self._keep(job)
        portions = _portions(job, call)
        has_begun = False
        try:
            await anext(portions, None)
            has_begun = True
        finally:
            if not has_begun:
                del self._jobs[job.id]
        call.site.tasks.spawn(_run(job, call, portions))
        location = {"location": f"{ROOT}/jobs/{job.id}"}
        return CallResult(status=ACCEPTED, body=job.record().model_dump(), headers=location)

    def _keep(self, job: Job) -> None:
        self._jobs[job.id] = job
        for old in [each for each in self._jobs.values() if each.state != RUNNING]:
            if len(self._jobs) <= KEPT_MAX:
                return
            del self._jobs[old.id]

    async def list(self, call: Call) -> CallResult:
        """Return the jobs that the client may see, the newest first."""
        call.demand(VIEW, MESSAGES)
        items = [job.record().model_dump() for job in reversed(self._jobs.values())]
        return CallResult(body={"items": items, "next": None})

    async def read(self, call: Call) -> CallResult:
        """Return one job."""
        call.demand(VIEW, MESSAGES)
        job = self._jobs.get(call.name)
        if job is None:
            raise Failure(NOT_FOUND, f"no job {call.name:.50}")
        return CallResult(body=job.record().model_dump())
