"""The service behind `$management`: checks the client, calls the entity, sends the response."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from broker.amqp.errors import INVALID_FIELD, UNAUTHORIZED_ACCESS, LinkFault
from broker.amqp.errors import NOT_FOUND as NO_SUCH
from broker.amqp.errors import PRECONDITION_FAILED as NOT_AS_EXPECTED
from broker.links.container import Container
from broker.links.peer import Peer
from broker.links.refusal import as_link_fault
from broker.links.service import Service
from broker.management.acl import AclContext, AclEntity
from broker.management.audit_records import AuditRecords
from broker.management.auditing import SECRETS, ManagementAudit, UsersChanged, via_of
from broker.management.backups import Backups
from broker.management.bridges import BridgeEntity
from broker.management.configuration import Configuration, ConfigurationSource
from broker.management.connections import Connections, Links
from broker.management.definition import DefinitionKind
from broker.management.definitions import Definitions
from broker.management.drains import DrainEntity
from broker.management.entity import EDIT, VIEW, Caller, Denied, Entity, Operation
from broker.management.events import Events
from broker.management.later import LATER_MAX, Later, Spawn, Told
from broker.management.leases import LeaseEntity
from broker.management.login_sources import LoginSources
from broker.management.members import Members
from broker.management.messages import MESSAGE, Messages
from broker.management.node_definitions import NodeDefinitions
from broker.management.nodes import Nodes
from broker.management.overview import Overview
from broker.management.renewal import LOGIN, LoginRenewals, renewed_login
from broker.management.replies import Replies
from broker.management.request import (
    BAD_REQUEST,
    BUSY,
    CONFLICT,
    FAILED,
    FAILURES_FROM,
    FORBIDDEN,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    Envelope,
    Refused,
    Request,
    read_envelope,
    read_request,
)
from broker.management.response import Response, as_message, response_of
from broker.management.roles import RoleEntity
from broker.management.route import explanations_of
from broker.management.rule_definitions import LIMITS, ROLES, RULES, RuleDefinitions, RulesInFile
from broker.management.sinks import Sinks
from broker.management.stores import DamagedMessages, Stores
from broker.management.subscription_definitions import SubscriptionDefinitions
from broker.management.subscriptions import SubscriptionEntities
from broker.management.suspended_links import SuspendedLinks
from broker.management.tokens import TokenEntity
from broker.management.transactions import TransactionEntity
from broker.management.user_definitions import UserDefinitions
from broker.management.users import LoginRules, UserEntity
from broker.message import Message
from broker.routing.errors import RoutingError
from broker.routing.queues.node import QUEUE, TOPIC, Node
from broker.routing.queues.paging import NotLoaded, Parked
from broker.security.resources import EVERY, MANAGEMENT, NAMES, Resource
from broker.stored_tokens import StoredTokens
from storage.api import Store, StoreError

SELF: Final = "org.amqp.management"
"""The type of the management node itself, for QUERY and the operations GET-…."""

VIEWING: Final = frozenset({"READ", "EXPLAIN", "CHECK", "EXPORT", "BOUNDS"})
"""Operations that change nothing; all others, apart from queries, are edits."""

PARTS: Final = NAMES[MANAGEMENT]
NOTHING_ALLOWED: Final = "not allowed to view any part of management (no rule allows it)"

STATUS: Final = {
    NO_SUCH: NOT_FOUND,
    INVALID_FIELD: BAD_REQUEST,
    UNAUTHORIZED_ACCESS: FORBIDDEN,
    NOT_AS_EXPECTED: PRECONDITION_FAILED,
}
"""Status codes by AMQP error condition. Any other condition becomes CONFLICT (409)."""


class ParkedRequest(Parked):
    """A request about messages that are not in memory. Executed again when they are loaded."""

    def __init__(self, management: Management, peer: Peer, request: Message) -> None:
        self._management: Final = management
        self._peer: Final = peer
        self._request: Final = request

    def loaded(self) -> None:
        try:
            self._management.answer(self._peer, self._request)
        except (RoutingError, LinkFault):
            return  # the reply node is full or deleted by now: nothing can take a response


class Management(Service):
    """The management service: executes requests of administrators, refuses all others with 403.

    Users are managed only with `accounts`, API tokens only with `api_tokens` besides; the store,
    backups, events and sinks only with `store` and `spawn`, rules only with `spawn`, and settings
    only with `settings`. `listeners` returns the names of the listeners, with which rules are
    compared, and `acl_file` the file of rules that an import of definitions changes.
    """

    def __init__(
        self,
        container: Container,
        store: Store | None = None,
        spawn: Spawn | None = None,
        *,
        accounts: Callable[[], LoginRules] | None = None,
        api_tokens: StoredTokens | None = None,
        users_changed: UsersChanged | None = None,
        settings: Callable[[], ConfigurationSource | None] | None = None,
        listeners: Callable[[], Iterable[str]] | None = None,
        acl_file: Callable[[], Path | None] | None = None,
    ) -> None:
        self._container: Final = container
        changes = container.router.changes
        self._audit: Final = ManagementAudit(container.audit, changes, users_changed)
        self._requests = 0
        self._spawn: Final = spawn
        self._replies: Final = Replies(container)
        self._waiting = 0
        entities = _entities_of_routing(container, self._spawn_work if spawn else None)
        if store is not None and spawn is not None:
            entities += _entities_of_store(container, store, spawn)
        if accounts is not None:
            entities += _entities_of_logins(container, accounts, api_tokens)
        if settings is not None:
            entities += [Configuration(settings), DrainEntity(container)]
        if spawn is not None:
            context = AclContext(logins=accounts, listeners=listeners)
            entities += [AclEntity(container, context), RoleEntity(container)]
            entities.append(AuditRecords(container))
            entities.append(_definitions(container, accounts, acl_file))
        self._entities: Final = {entity.type: entity for entity in entities}
        self._explanations: Final = explanations_of(container)
        renewals = None if spawn is None else LoginRenewals(container, spawn)
        self._renewals: Final = {} if renewals is None else renewals.operations()
        self._own: Final[Mapping[str, Operation]] = {
            "QUERY": self._query,
            "LIST": self._list,
            "GET-TYPES": self._types,
            "GET-ATTRIBUTES": self._attributes,
            "GET-OPERATIONS": self._operations,
            "GET-MGMT-NODES": self._management_nodes,
        }

    def answer(self, peer: Peer, request: Message) -> None:
        envelope = read_envelope(request)
        node = self._replies.checked_node(peer, envelope, request)
        changes = self._container.router.changes
        if changes.found:
            self._container.pass_on_changes(peer)
        self._requests += 1
        caller = Caller(
            identity=peer.identity,
            address=peer.entrance.address,
            may=peer.may,
            connection=int(peer.id),
            tell=partial(self._tell, peer, envelope),
            via=via_of(peer.entrance),
            request_id=f"{peer.id}-{self._requests}",
            renew=partial(renewed_login, self._container, peer),
        )
        try:
            response = self.perform(caller, read_request(request))
        except Refused as refusal:
            response = response_of(refusal)
        except NotLoaded:
            self._container.router.context.paging.park(ParkedRequest(self, peer, request))
            return
        if isinstance(response, Told):
            return
        if isinstance(response, Later):
            assert self._spawn is not None, "only what may wait is asked to"
            self._spawn(self._finish(peer, envelope, response))
        else:
            self._respond(node, envelope, response)

    def _spawn_work(self, work: Coroutine[None, None, None]) -> None:
        """Run the rest of a request that has its response; a round follows."""
        assert self._spawn is not None
        self._spawn(self._then_round(work))

    async def _then_round(self, work: Coroutine[None, None, None]) -> None:
        await work
        self._container.run_round()

    def _respond(self, node: Node, envelope: Envelope, response: Response) -> None:
        self._replies.send(node, as_message(response, envelope, self._container.clock))

    async def _finish(self, peer: Peer, envelope: Envelope, later: Later) -> None:
        """Respond when the store has answered, unless the client has disconnected by then."""
        self._tell(peer, envelope, await self.answer_of(later))
        self._container.run_round()

    async def answer_of(self, later: Later) -> Response:
        """Return the response that `later` awaits. To be called once for each that `perform` gave.

        Until it returns, the request counts among the LATER_MAX that may wait.
        """
        try:
            return await later.answer()
        except StoreError as error:
            return Response(status=FAILED, description=str(error))
        finally:
            self._waiting -= 1

    def _tell(self, peer: Peer, envelope: Envelope, response: Response) -> None:
        """Send `response` to the client, unless its reply node no longer exists."""
        node = self._replies.node_for(peer, envelope)
        if node is not None:
            self._respond(node, envelope, response)

    def perform(self, caller: Caller, request: Request) -> Response | Later | Told:
        """Carry out a request, which may have come in any way.

        Raise NotLoaded if it is about messages that are not in memory: it is to be made again once
        they are. The changes that a response reports are not durable yet.
        """
        found = self._carried_out(caller, request)
        if isinstance(found, Response):
            if found.status < FAILURES_FROM:
                self._report(caller, request, found)
            if found.status != FORBIDDEN:
                self._record(caller, request, found)
        return found

    def _carried_out(self, caller: Caller, request: Request) -> Response | Later | Told:
        """Carry out a request, if the caller has the right for it."""
        try:
            self._check_right(caller, request)
            found = self._operation(request)(request, caller)
            if isinstance(found, Later):
                if self._waiting >= LATER_MAX:
                    raise Refused(BUSY, f"{LATER_MAX} requests wait for the store; ask again later")
                self._waiting += 1
                if self._is_recorded(request):
                    return Later(partial(self._recorded, found, caller, request))
            return found
        except Denied as denial:
            self._container.stats.denied(denial.resource.kind, denial.verb)
            self._audit.denied(caller, denial)
            return response_of(denial)
        except Refused as refusal:
            return response_of(refusal)
        except RoutingError as unwilling:
            fault = as_link_fault(unwilling)
        except LinkFault as other:
            fault = other
        status = STATUS.get(fault.condition, CONFLICT)
        return Response(
            status=status, description=fault.description, condition=str(fault.condition)
        )

    def _is_recorded(self, request: Request) -> bool:
        """Return whether the audit records such requests: those that change or show messages."""
        entity = self._entities.get(request.type)
        if entity is None or not self._container.audit.is_on:
            return False
        return request.operation not in entity.routine or request.type == MESSAGE

    def _record(self, caller: Caller, request: Request, response: Response) -> None:
        if self._is_recorded(request):
            self._audit.performed(caller, request, response)
        elif request.type == SELF and request.operation == "QUERY":
            kind = str(request.properties.get("entityType", ""))
            self._audit.queried(caller, request, kind)

    async def _recorded(self, later: Later, caller: Caller, request: Request) -> Response:
        response = await later.answer()
        self._audit.performed(caller, request, response)
        return response

    def _check_right(self, caller: Caller, request: Request) -> None:
        """Raise Refused unless the caller has the right for the request, before it is looked at."""
        if request.type == LOGIN:
            return  # of the connection itself: the token decides
        subject, verb = request.type, EDIT
        if request.type == SELF:
            subject, verb = str(request.properties.get("entityType", "")), VIEW
        entity = self._entities.get(subject)
        if entity is None:
            # clients that may view some part may see which types and operations there are
            asked = [caller.may(VIEW, Resource(MANAGEMENT, part)) for part in PARTS]
            if not any(decision.allowed for decision in asked):
                every = Resource(MANAGEMENT, EVERY)
                raise Denied(VIEW, every, asked[0], text=NOTHING_ALLOWED)
            return
        if request.operation in VIEWING:
            verb = VIEW
        right = None if request.type == SELF else entity.right(request)
        if right is None or not caller.may(right.verb, right.resource).allowed:
            caller.demand(verb, Resource(MANAGEMENT, entity.part))

    def _report(self, caller: Caller, request: Request, response: Response) -> None:
        """Report a successful change, and the client that requested it, to the log."""
        entity = self._entities.get(request.type)
        if entity is None or request.operation in entity.routine:
            return
        name = request.name or request.identity or ""
        facts = {"operation": request.operation, "type": request.type, "name": name}
        told = {key: value for key, value in request.arguments.items() if key not in SECRETS}
        if told:
            facts["arguments"] = str(told)
        body = response.body
        if isinstance(body, Mapping):
            body = {key: value for key, value in body.items() if key not in SECRETS}
        if body:
            facts["result"] = str(body)
        self._container.watcher.managed(caller.identity, caller.address, facts)

    def _operation(self, request: Request) -> Operation:
        if request.type == SELF:
            known = self._own
        elif request.type in self._explanations:
            known = self._explanations[request.type]
        elif request.type == LOGIN:
            known = self._renewals
        else:
            known = self._entity(request.type).operations()
        found = known.get(request.operation)
        if found is None:
            raise Refused(
                NOT_IMPLEMENTED,
                f"no operation {request.operation:.50} of {request.type};"
                f" known are {', '.join(sorted(known))}",
            )
        return found

    def _entity(self, name: str) -> Entity:
        entity = self._entities.get(name)
        if entity is None:
            known = ", ".join(sorted(self._entities))
            raise Refused(BAD_REQUEST, f"no type {name:.50}; known are {known}")
        return entity

    # -- operations of the node itself

    def _query(self, request: Request, caller: Caller) -> Response | Later:  # noqa: ARG002
        kind = request.properties.get("entityType")
        if not isinstance(kind, str):
            raise Refused(BAD_REQUEST, "QUERY has the application property entityType")
        return self._entity(kind).query(request)

    def _list(self, request: Request, caller: Caller) -> Response | Later:  # noqa: ARG002
        kind = request.properties.get("entityType")
        if not isinstance(kind, str):
            raise Refused(BAD_REQUEST, "LIST has the application property entityType")
        return self._entity(kind).listed(request)

    def _types(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        return Response(body={name: [] for name in self._chosen(request)})

    def _attributes(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        return Response(
            body={name: list(entity.attributes) for name, entity in self._chosen(request).items()}
        )

    def _operations(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        return Response(
            body={
                name: {operation: [] for operation in entity.operations()}
                for name, entity in self._chosen(request).items()
            }
        )

    def _chosen(self, request: Request) -> Mapping[str, Entity]:
        kind = request.properties.get("entityType")
        return {kind: self._entity(kind)} if isinstance(kind, str) else self._entities

    def _management_nodes(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        return Response(body=[])


def _entities_of_logins(
    container: Container, accounts: Callable[[], LoginRules], api_tokens: StoredTokens | None
) -> list[Entity]:
    users = UserEntity(accounts, container.router)
    sources = LoginSources(lambda: accounts().throttle, container.clock)
    if api_tokens is None:
        return [users, sources]
    return [users, sources, TokenEntity(api_tokens, lambda: accounts().users, container)]


def _entities_of_routing(container: Container, spawn: Spawn | None) -> list[Entity]:
    """Return the entities that each broker has: nodes, messages, and what clients hold of them."""
    router, journal = container.router, container.journal
    return [
        *(Nodes(kind, router, journal) for kind in (QUEUE, TOPIC)),
        *(Connections(container), Links(container), TransactionEntity(container)),
        Messages(router, journal),
        SubscriptionEntities(router, journal),
        *(LeaseEntity(router, journal, spawn), SuspendedLinks(router, journal)),
        BridgeEntity(container),
    ]


def _entities_of_store(container: Container, store: Store, spawn: Spawn) -> list[Entity]:
    router = container.router
    return [
        *(Stores(store, router), DamagedMessages(store)),
        Backups(store, spawn, container.audit),
        Overview(container, store),
        Members(container.group, store),
        Events(store, router.prefixes),
        Sinks(router, container.journal, store, spawn=spawn),
    ]


def _definitions(
    container: Container,
    accounts: Callable[[], LoginRules] | None,
    acl_file: Callable[[], Path | None] | None,
) -> Definitions:
    """Return the definitions of a broker, their kinds in the order in which to import them."""
    router, journal = container.router, container.journal
    file = RulesInFile(container, acl_file or _no_file)
    kinds: list[DefinitionKind] = [RuleDefinitions(each, file) for each in (ROLES, RULES, LIMITS)]
    if accounts is not None:
        kinds.append(UserDefinitions(accounts))
    kinds += [NodeDefinitions(each, router, journal) for each in (QUEUE, TOPIC)]
    kinds.append(SubscriptionDefinitions(router, journal))
    return Definitions(kinds, router.notices)


def _no_file() -> Path | None:
    """Return that a broker has no file of rules."""
    return None
