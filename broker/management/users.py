"""Users that log in with a password: list, add, change, remove. No response has a password hash.

A CREATE request carries the password in its body, over the connection of an administrator.
This is as safe as the administrator's own login: either that connection was opened with SASL
PLAIN, which carries a password in the same way, or only this machine can reach the broker.
Requests are neither stored nor logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.page import read_page
from broker.management.request import BAD_REQUEST, CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import CREATED, OK, Response
from broker.routing.router import Router
from broker.security.authenticate import Users, UsersError, refusal_of_name, refusal_of_password

T = TypeVar("T")

USER: Final = "user"

IN_FILE: Final = "file"
IN_SETTINGS: Final = "settings"


@dataclass(frozen=True, kw_only=True)
class UserRecord(EntityRecord):
    """A user. `source` is `file`, or `settings` for the first user, which no request changes."""

    administrator: bool
    source: str


@dataclass(frozen=True)
class LoginRules:
    """The users that may log in, and whether clients without a password may connect, too."""

    users: Users
    anonymous: bool


class UserEntity(Entity):
    """The users of the broker's users file, and the first user of its settings."""

    type = USER
    attributes = attributes_of(UserRecord)

    def __init__(self, accounts: Callable[[], LoginRules], router: Router) -> None:
        """`accounts` returns the current rules. Each change is logged as a notice of `router`."""
        self._accounts: Final = accounts
        self._router: Final = router
        self._changing: Final = asyncio.Lock()

    def operations(self) -> Mapping[str, Operation]:
        return {"CREATE": self._create, "DELETE": self._delete}

    def query(self, request: Request) -> Response:
        """Return a page of users, sorted by name."""
        page = read_page(request, self.attributes)
        users = self._accounts().users
        try:
            names = {*users.names(), *([] if users.first is None else [users.first])}
        except UsersError as error:
            raise Refused(CONFLICT, str(error)) from None
        return page.response(_record_of(users, name).as_map() for name in page.choose(names))

    def _create(self, request: Request, caller: Caller) -> Later:
        """Add a user, or set a new `password` for an existing user.

        Without `administrator` an existing user keeps that attribute, and a new user gets false.
        The response has, besides the record, `created` (whether the user is new), the `file`, and
        `anonymous`: whether clients without a password may still connect.
        """
        request.only("password", "administrator")
        name, password = request.subject(), request.text("password")
        refusal = refusal_of_name(name) or refusal_of_password(password)
        if refusal is not None:
            raise Refused(BAD_REQUEST, refusal)
        administrator: bool | None = None
        if request.arguments.get("administrator") is not None:
            administrator = request.flag("administrator")
        if administrator is False and name == caller.peer.user:
            raise Refused(CONFLICT, f"{name} is the user that asks, and stays an administrator")
        accounts = self._accounts()
        add = partial(accounts.users.add, name, password, administrator=administrator)

        async def answer() -> Response:
            try:
                new = await self._changed(add)
            except UsersError as error:
                return Response(status=CONFLICT, description=str(error))
            done = "added" if new else "changed the password of"
            self._router.notices.append(f"{_asker(caller)} {done} user {name}")
            facts = {
                "created": new,
                "file": str(accounts.users.file),
                "anonymous": accounts.anonymous,
            }
            return Response(
                status=CREATED if new else OK,
                description="Created" if new else "OK",
                body={**_record_of(accounts.users, name).as_map(), **facts},
            )

        return Later(answer)

    def _delete(self, request: Request, caller: Caller) -> Later:
        """Remove a user from the users file. Open connections of that user stay open."""
        request.only()
        name = request.subject()
        users = self._accounts().users
        if name == caller.peer.user:
            raise Refused(CONFLICT, f"{name} is the user that asks")
        if name == users.first:
            raise Refused(CONFLICT, f"user {name!r} is in the broker's settings, not in a file")
        try:
            known = name in users.names()
        except UsersError as error:
            raise Refused(CONFLICT, str(error)) from None
        if not known:
            raise Refused(NOT_FOUND, f"no user {name:.255} in {users.file}")

        async def answer() -> Response:
            try:
                await self._changed(partial(users.remove, name))
            except UsersError as error:
                return Response(status=CONFLICT, description=str(error))
            self._router.notices.append(f"{_asker(caller)} removed user {name}")
            return Response(body={"file": str(users.file)})

        return Later(answer)

    async def _changed(self, change: Callable[[], T]) -> T:
        """Change the file in a thread, as hash and sync take time; one change at a time."""
        async with self._changing:
            return await asyncio.get_running_loop().run_in_executor(None, change)


def _record_of(users: Users, name: str) -> UserRecord:
    return UserRecord(
        name=name,
        identity=name,
        type=USER,
        administrator=users.is_administrator(name),
        source=IN_SETTINGS if name == users.first else IN_FILE,
    )


def _asker(caller: Caller) -> str:
    """Return the user and address of the requester, as the log names them."""
    return f"{caller.peer.user or 'anonymous'} at {caller.peer.address}"
