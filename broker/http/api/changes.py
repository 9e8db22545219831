"""Endpoints that create or change an entity, each by several requests to management."""

from __future__ import annotations

from typing import Any

from broker.http.api.endpoint import Call, CallResult
from broker.http.api.entities import ResourceKind, named
from broker.http.api.json_values import decoded, encoded, encoded_in_portions
from broker.http.api.kinds import USERS
from broker.http.api.models import BackupBody, ManagementBody, UserBody
from broker.http.api.problems import Failure
from broker.management.backups import BACKUP
from broker.management.configuration import SETTINGS
from broker.management.entity import EDIT, VIEW
from broker.management.request import CONFLICT, FAILURES_FROM, Request
from broker.management.response import ACCEPTED, CREATED, OK
from broker.security.resources import MANAGEMENT, Resource


async def put_node(kind: ResourceKind, call: Call) -> CallResult:
    """Create a queue or topic. One that exists stays as it is."""
    await kind.check(call)
    name = named(call)
    found = await call.attempt(kind.request("READ", name))
    if found.status < FAILURES_FROM:
        call.demand(EDIT, Resource(MANAGEMENT, kind.part))
        return CallResult(status=OK, body=found.body, headers=kind.tag(found.body))
    made = await call.ask(kind.request("CREATE", name))
    return CallResult(status=CREATED, body=made.body, headers=kind.tag(made.body))


async def put_user(call: Call) -> CallResult:
    """Set a password with what belongs to it, or roles, then whether the user may log in.

    What the second request, or the response, would be refused for is looked at before the first.
    """
    await USERS.check(call)
    name, body = named(call), call.read(UserBody)
    for verb in (EDIT, VIEW):
        call.demand(verb, Resource(MANAGEMENT, USERS.part))
    if body.enabled is False and name == call.caller.identity.user:
        raise Failure(CONFLICT, f"{name} is the user that asks")
    said = body.model_dump(exclude_none=True, exclude={"enabled"})
    status = OK
    if said:
        is_new = body.password is not None and body.keep_old_s is None
        operation = "CREATE" if is_new else "UPDATE"
        status = (await call.ask(USERS.request(operation, name, said))).status
    if body.enabled is not None:
        await call.ask(USERS.request("UPDATE", name, {"enabled": body.enabled}))
    found = (await call.ask(USERS.request("READ", name))).body
    return CallResult(status=status, body=found, headers=USERS.tag(found))


async def perform(call: Call) -> CallResult:
    """Carry out a request to management."""
    asked = call.read(ManagementBody)
    request = Request(
        operation=asked.operation,
        type=asked.type,
        name=asked.name,
        identity=asked.identity,
        properties=asked.properties,
        arguments={name: decoded(value) for name, value in asked.arguments.items()},
    )
    response = await call.ask(request)
    told = encoded({"status": response.status, "description": response.description})
    body = await encoded_in_portions(response.body)
    return CallResult(body=told[:-1] + b', "body": ' + body + b"}")


async def read_log_level(call: Call) -> CallResult:
    """Return the level of the log, which is one of the settings."""
    response = await call.ask(Request(operation="READ", type=SETTINGS, name="broker"))
    body: Any = response.body
    return CallResult(body={"level": body["settings"]["log"]["value"]["level"]})


async def back_up(call: Call) -> CallResult:
    """Begin a backup."""
    request = Request(operation="CREATE", type=BACKUP, name=call.read(BackupBody).file)
    return CallResult(status=ACCEPTED, body=(await call.ask(request)).body)
