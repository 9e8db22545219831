"""Users that log in: list, add, change, remove. No response has a password hash.

CREATE and UPDATE carry the password in their body, over the connection of an administrator.
This is as safe as the administrator's own login: either that connection was opened with SASL
PLAIN, which carries a password in the same way, or only this machine can reach the broker.
Requests are neither stored nor logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from broker.log_events import USER_CHANGED
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import BAD_REQUEST, CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import CREATED, OK, Response
from broker.routing.router import Router
from broker.security.account import (
    ADMIN_ROLE,
    CERTIFICATES_MAX,
    ROLES_MAX,
    UserAccount,
    UsersError,
    refusal_of_name,
    user_attributes,
)
from broker.security.passwords import refusal_of_password
from broker.security.throttle import LoginThrottle
from broker.security.users import KEEP_OLD_S_MAX, Users

T = TypeVar("T")

USER: Final = "user"

IN_SETTINGS: Final = "settings"


@dataclass(frozen=True, kw_only=True)
class UserRecord(EntityRecord):
    """A user. `source` is `file`, `store`, or `settings` for the first user.

    No request changes the first user.

    The others are those of `UserAttributes`.
    """

    administrator: bool
    source: str
    roles: Sequence[str]
    enabled: bool
    password: bool
    scram: Sequence[str]
    mechanisms: Sequence[str] | None
    certificates: Sequence[str]
    credential_version: int
    changed_at: str | None
    old_password_until: str | None


@dataclass(frozen=True)
class LoginRules:
    """The users that may log in, and whether clients without a password may connect, too.

    `throttle` has the sources of failed logins.
    """

    users: Users
    anonymous: bool
    throttle: LoginThrottle


class UserEntity(Entity):
    """The users of the broker's users file and store, and the first user of its settings."""

    type = USER
    part = "users"
    attributes = attributes_of(UserRecord)

    def __init__(self, accounts: Callable[[], LoginRules], router: Router) -> None:
        """`accounts` returns the current rules. Each change is logged as a notice of `router`."""
        self._accounts: Final = accounts
        self._router: Final = router
        self._changing: Final = asyncio.Lock()

    def operations(self) -> Mapping[str, Operation]:
        return {
            "CREATE": self._create,
            "READ": self._read,
            "UPDATE": self._update,
            "DELETE": self._delete,
        }

    def query(self, request: Request) -> Response:
        """Return a page of users, sorted by name."""
        page = read_page(request, self.attributes)
        users = self._accounts().users
        names = _names(users)
        return page.response(_record_of(users, name).as_map() for name in page.choose(names))

    def listed(self, request: Request) -> Later:
        users = self._accounts().users
        listing = Listing(
            items=list(_names(users)),
            names_of=lambda name: (name, name),
            record_of=lambda name: _record_at(users, name),
            filters={name: name for name in ("enabled", "administrator", "source")},
        )
        return list_of(request, self.attributes, listing)

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        name = request.subject()
        users = self._accounts().users
        if name != users.first:
            self._require(name)
        return Response(body=_record_of(users, name).as_map())

    def _create(self, request: Request, caller: Caller) -> Later:
        """Add a user, or set a new `password` for an existing user.

        Without `roles`, `administrator` and `certificates` an existing user keeps these, and a new
        user is an application. `scram` false leaves the verifiers for SCRAM out. The response has,
        besides the record, `created` (whether the user is new), the `file`, and `anonymous`:
        whether clients without a password may still connect.
        """
        request.only("password", "administrator", "roles", "certificates", "scram")
        name, password = request.subject(), _password_in(request)
        refusal = refusal_of_name(name)
        if refusal is not None:
            raise Refused(BAD_REQUEST, refusal)
        administrator = _flag_in(request, "administrator")
        roles = _texts_in(request, "roles", ROLES_MAX)
        _check_stays_administrator(name, caller, roles, administrator=administrator)
        accounts = self._accounts()
        add = partial(
            accounts.users.add,
            name,
            password,
            administrator=administrator,
            roles=roles,
            certificates=_texts_in(request, "certificates", CERTIFICATES_MAX),
            scram=_flag_in(request, "scram") is not False,
        )

        async def answer() -> Response:
            try:
                new = await self._changed(add)
            except UsersError as error:
                return Response(status=CONFLICT, description=str(error))
            done = "added" if new else "changed the password of"
            self._tell(caller, f"{done} user {name}")
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

    def _update(self, request: Request, caller: Caller) -> Later:
        """Set `enabled`, or `roles`, or a new `password`, of an existing user.

        `keep_old_s`: seconds for which the old password enters, too. The response has, besides the
        record, the `file`, and `changed`: false if the user was enabled or disabled before, or had
        these roles.
        """
        request.only("enabled", "roles", "password", "keep_old_s", "scram")
        name, enabled = request.subject(), _flag_in(request, "enabled")
        roles = _texts_in(request, "roles", ROLES_MAX)
        users = self._accounts().users
        self._require(name)
        if (enabled is not None or roles is not None) and len(request.arguments) > 1:
            raise Refused(BAD_REQUEST, "UPDATE sets either enabled, or roles, or a password")
        change: Callable[[], object]
        if roles is not None:
            _check_stays_administrator(name, caller, roles)
            change = partial(users.set_roles, name, roles)
            done = f"gave the roles {', '.join(roles)} to"
        elif enabled is not None:
            if name == caller.identity.user and not enabled:
                raise Refused(CONFLICT, f"{name} is the user that asks")
            change = partial(users.set_enabled, name, enabled=enabled)
            done = "enabled" if enabled else "disabled"
        else:
            keep_old_s = request.number("keep_old_s", 0, high=KEEP_OLD_S_MAX)
            scram = _flag_in(request, "scram") is not False
            password = _password_in(request)
            change = partial(users.passwd, name, password, keep_old_s=keep_old_s, scram=scram)
            done = "changed the password of"

        async def answer() -> Response:
            try:
                changed = await self._changed(change)
            except UsersError as error:
                return Response(status=CONFLICT, description=str(error))
            if changed is not False:
                self._tell(caller, f"{done} user {name}")
            facts = {"changed": changed is not False, "file": str(users.file)}
            return Response(body={**_record_of(users, name).as_map(), **facts})

        return Later(answer)

    def _delete(self, request: Request, caller: Caller) -> Later:
        """Remove a user, which ends its connections within five seconds."""
        request.only()
        name = request.subject()
        users = self._accounts().users
        if name == caller.identity.user:
            raise Refused(CONFLICT, f"{name} is the user that asks")
        self._require(name)
        source = users.source_of(name)

        async def answer() -> Response:
            try:
                await self._changed(partial(users.remove, name))
            except UsersError as error:
                return Response(status=CONFLICT, description=str(error))
            self._tell(caller, f"removed user {name}")
            return Response(body={"file": str(users.file), "source": source})

        return Later(answer)

    def _require(self, name: str) -> None:
        """Raise Refused unless the user `name` is in file or store, and not in the settings."""
        users = self._accounts().users
        if name == users.first:
            raise Refused(CONFLICT, f"user {name!r} is in the broker's settings, not in a file")
        try:
            known = users.account(name) is not None
        except UsersError as error:
            raise Refused(CONFLICT, str(error)) from None
        if not known:
            raise Refused(NOT_FOUND, f"no user {name:.255} in {users.place}")

    def _tell(self, caller: Caller, done: str) -> None:
        """Report a change of users to the log, with the user and address of the requester."""
        text = f"{caller.identity.name()} at {caller.address} {done}"
        self._router.notices.append(USER_CHANGED.notice(text))

    async def _changed(self, change: Callable[[], T]) -> T:
        """Make a change in a thread, as hash and sync take time; one change at a time."""
        async with self._changing:
            return await asyncio.get_running_loop().run_in_executor(None, change)


def _names(users: Users) -> set[str]:
    """Return the names of all users; Refused if a source of them cannot be read."""
    try:
        return {*users.names(), *([] if users.first is None else [users.first])}
    except UsersError as error:
        raise Refused(CONFLICT, str(error)) from None


def _record_at(users: Users, name: str) -> UserRecord | None:
    """Return the record of a user, None if it has been removed."""
    if name != users.first and users.account(name) is None:
        return None
    return _record_of(users, name)


def _record_of(users: Users, name: str) -> UserRecord:
    account = None if name == users.first else users.account(name)
    source = IN_SETTINGS if account is None else users.source_of(name)
    shown = user_attributes(account or UserAccount(name=name, roles=(ADMIN_ROLE,)))
    if account is None:
        shown["password"] = True
    return UserRecord(name=name, identity=name, type=USER, source=source, **shown)


def _check_stays_administrator(
    name: str, caller: Caller, roles: Sequence[str] | None, *, administrator: bool | None = None
) -> None:
    """Raise Refused if users would take the role admin away from themselves."""
    loses = administrator is False or (roles is not None and ADMIN_ROLE not in roles)
    if loses and name == caller.identity.user:
        raise Refused(CONFLICT, f"{name} is the user that asks, and stays an administrator")


def _password_in(request: Request) -> str:
    password = request.text("password")
    refusal = refusal_of_password(password)
    if refusal is not None:
        raise Refused(BAD_REQUEST, refusal)
    return password


def _flag_in(request: Request, name: str) -> bool | None:
    """Return a boolean argument, None if it is left out."""
    return None if request.arguments.get(name) is None else request.flag(name)


def _texts_in(request: Request, name: str, at_most: int) -> list[str] | None:
    """Return an argument that is a list of strings, None if it is left out."""
    return None if request.arguments.get(name) is None else request.texts(name, at_most=at_most)
