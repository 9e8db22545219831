"""Access rules by management: the rules in force, their problems, and decisions with reasons.

A decision is looked for among up to 10,000 rules, and a check compares them with each other. Both
take place in a thread, on a copy of the rules: those in force keep indexes that no second thread
may use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from broker.links.container import Container
from broker.management.asked_resource import asked_resource
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import BAD_REQUEST, CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import Response
from broker.management.users import LoginRules
from broker.security.access import AccessRules
from broker.security.account import ADMIN_ROLE, ROLES_MAX, UsersError
from broker.security.limits import Limit
from broker.security.question import AccessQuestion
from broker.security.resources import Resource, ResourceError
from broker.security.rules import Rule

T = TypeVar("T")

ACL: Final = "acl"

OF_HTTP: Final = "http"
"""The listener that rules know the HTTP server by."""


@dataclass(frozen=True, kw_only=True)
class RuleRecord(EntityRecord):
    """A rule, or a limit of users. The name of a rule is its id."""

    effect: str
    who: Sequence[str]
    can: Sequence[str]
    on: Sequence[str]
    when: str
    built_in: bool


@dataclass(frozen=True, kw_only=True)
class AclContext:
    """The users of the broker, and the names of its listeners: rules are about both."""

    logins: Callable[[], LoginRules] | None = None
    listeners: Callable[[], Iterable[str]] | None = None

    def roles_of(self, user: str) -> tuple[str, ...]:
        """Return the roles of a user of the broker, none for others. Raise UsersError."""
        if self.logins is None:
            return ()
        users = self.logins().users
        if user == users.first:
            return (ADMIN_ROLE,)
        account = users.account(user)
        return () if account is None else account.roles

    def users(self) -> dict[str, tuple[str, ...]]:
        """Return the roles of each user of the broker. Raise UsersError."""
        if self.logins is None:
            return {}
        users = self.logins().users
        found = {name: account.roles for name, account in users.accounts().items()}
        return found if users.first is None else {**found, users.first: (ADMIN_ROLE,)}


class AclEntity(Entity):
    """The rules in force, of the rules file and of the built-in roles, and the limits of users."""

    type = ACL
    part = "acl"
    attributes = attributes_of(RuleRecord)
    routine = ("READ", "EXPLAIN", "CHECK")

    def __init__(self, container: Container, context: AclContext) -> None:
        self._container: Final = container
        self._context: Final = context
        self._copy: AccessRules | None = None
        self._copied_version = 0
        self._using_copy: Final = asyncio.Lock()

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read, "EXPLAIN": self._explain, "CHECK": self._check}

    def query(self, request: Request) -> Response:
        """Return a page of the rules and limits, sorted by name."""
        page = read_page(request, self.attributes)
        records = self._records()
        return page.response(_record_of(records[name]).as_map() for name in page.choose(records))

    def listed(self, request: Request) -> Later:
        listing = Listing(
            items=list(self._records().values()),
            names_of=_names_of,
            record_of=_record_of,
            filters={name: name for name in ("effect", "built_in")},
        )
        return list_of(request, self.attributes, listing)

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        found = self._records().get(request.subject())
        if found is None:
            raise Refused(NOT_FOUND, f"no rule {request.subject():.64}")
        return Response(body=_record_of(found).as_map())

    def _records(self) -> dict[str, Rule | Limit]:
        rules = self._container.access
        found: dict[str, Rule | Limit] = {rule.id: rule for rule in rules.rules}
        return {**found, **{limit.name(): limit for limit in rules.limits}}

    def _explain(self, request: Request, caller: Caller) -> Later:  # noqa: ARG002
        """Decide about `verb` and `resource` for a client, and say why.

        The client is described by `user`, `roles` (beside those that the broker knows for the
        user), `mechanism`, `client_id`, `listener`, `from` and `tls`. The response has the
        attributes of `Explanation`, and `limits`, those of the user.
        """
        request.only(
            *("verb", "resource", "user", "roles", "mechanism", "client_id"),
            *("listener", "from", "tls"),
        )
        question = self._question(request)
        prefixes = self._container.router.prefixes
        try:
            asked = asked_resource(request.text("resource"), question.verb, prefixes)
        except ResourceError as error:
            raise Refused(BAD_REQUEST, str(error)) from None

        async def answer() -> Response:
            return Response(body=await self._beside(partial(_explained, question, asked)))

        return Later(answer)

    def _question(self, request: Request) -> AccessQuestion:
        user = request.text("user", "")
        roles = request.texts("roles", at_most=ROLES_MAX)
        try:
            known = self._context.roles_of(user) if user else ()
        except UsersError as error:
            raise Refused(CONFLICT, str(error)) from None
        return AccessQuestion(
            verb=request.text("verb"),
            user=user,
            roles=(*known, *roles),
            mechanism=request.text("mechanism", ""),
            client_id=request.text("client_id", ""),
            listener=request.text("listener", ""),
            host=request.text("from", ""),
            is_tls=request.flag("tls"),
        )

    def _check(self, request: Request, caller: Caller) -> Later:  # noqa: ARG002
        """Look for rules that never decide, unknown roles and listeners, users without a role.

        The response has `problems`, each with `rule` and `problem`, and the numbers of `rules`,
        `roles` and `limits` of the rules file.
        """
        request.only()
        try:
            users = self._context.users()
        except UsersError as error:
            raise Refused(CONFLICT, str(error)) from None
        listeners = self._context.listeners
        names = None if listeners is None else [*listeners(), OF_HTTP]

        async def answer() -> Response:
            return Response(body=await self._beside(partial(_checked, users, names)))

        return Later(answer)

    async def _beside(self, work: Callable[[AccessRules], T]) -> T:
        """Return the result of `work` on a copy of the rules in force, done in a thread."""
        loop = asyncio.get_running_loop()
        async with self._using_copy:
            rules = self._container.access
            if self._copy is None or self._copied_version != rules.version:
                self._copied_version = rules.version
                self._copy = await loop.run_in_executor(None, _copy_of, rules)
            return await loop.run_in_executor(None, work, self._copy)


def _copy_of(rules: AccessRules) -> AccessRules:
    """Return the same rules with indexes of their own."""
    own = [rule for rule in rules.rules if not rule.is_built_in]
    return AccessRules(own, rules.roles, limits=rules.limits)


def _explained(
    question: AccessQuestion, asked: Resource, rules: AccessRules
) -> Mapping[str, object]:
    explanation = question.explained_by(rules, asked).record()
    return {**explanation, "limits": rules.limits_of(question.identity()).text()}


def _checked(
    users: Mapping[str, Sequence[str]], listeners: Sequence[str] | None, rules: AccessRules
) -> Mapping[str, object]:
    problems = rules.check(users=users, listeners=listeners)
    return {
        "problems": [{"rule": each.rule, "problem": each.text} for each in problems],
        "rules": sum(not rule.is_built_in for rule in rules.rules),
        "roles": len(rules.roles),
        "limits": len(rules.limits),
    }


def _names_of(found: Rule | Limit) -> tuple[str, str]:
    name = found.id if isinstance(found, Rule) else found.name()
    return name, name


def _record_of(found: Rule | Limit) -> RuleRecord:
    told = found.record()
    name = str(told.pop("id"))
    built_in = isinstance(found, Rule) and found.is_built_in
    return RuleRecord(name=name, identity=name, type=ACL, built_in=built_in, **told)  # type: ignore[arg-type]
