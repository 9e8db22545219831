"""API tokens: list, make, revoke. Only the response that makes a token has its secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.links.container import Container
from broker.management.entity import EDIT, Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import BAD_REQUEST, CONFLICT, FORBIDDEN, NOT_FOUND, Refused, Request
from broker.management.response import CREATED, NO_CONTENT, Response
from broker.security.account import ROLES_MAX, as_datetime, utc_text
from broker.security.api_tokens import (
    DESCRIPTION_CHARS_MAX,
    ISSUER,
    LIFE_DEFAULT_S,
    LIFE_MAX_S,
    LIFE_MIN_S,
    ApiToken,
    ApiTokenError,
    NewToken,
    new_token,
)
from broker.security.resources import MANAGEMENT, Resource
from broker.security.users import Users
from broker.stored_tokens import StoredTokens

TOKEN: Final = "token"  # noqa: S105 - a type


@dataclass(frozen=True, kw_only=True)
class TokenRecord(EntityRecord):
    """An API token; its name is its id. `roles` is null if it has all roles of its `owner`.

    `state` is `valid`, `expired`, or `ended`: its owner has another password now, is disabled, or
    was removed. Times are UTC; `used_at` is null if it has not logged in since the broker's start.
    """

    owner: str
    description: str
    roles: Sequence[str] | None
    state: str
    created_at: str
    expires_at: str
    used_at: str | None


@dataclass(frozen=True, kw_only=True)
class NewTokenRecord(TokenRecord):
    """A new API token with its secret, `token`, which no other response has."""

    token: str


class TokenEntity(Entity):
    """The API tokens of all users."""

    type = TOKEN
    part = "tokens"
    attributes = attributes_of(TokenRecord)

    def __init__(
        self, keeper: StoredTokens, users: Callable[[], Users], container: Container
    ) -> None:
        """`users` returns the current users: a reload may replace them."""
        self._keeper: Final = keeper
        self._users: Final = users
        self._container: Final = container

    def operations(self) -> Mapping[str, Operation]:
        return {"CREATE": self._create, "READ": self._read, "DELETE": self._delete}

    def query(self, request: Request) -> Response:
        """Return a page of tokens, by id."""
        page = read_page(request, self.attributes)
        found = {token.id: token for token in self._keeper.tokens.all()}
        return page.response(self._record(found[key]).as_map() for key in page.choose(found))

    def listed(self, request: Request) -> Later:
        listing = Listing(
            items=self._keeper.tokens.all(),
            names_of=lambda token: (token.id, token.id),
            record_of=self._record,
            filters={"owner": "owner", "state": "state"},
        )
        return list_of(request, self.attributes, listing)

    def _record(self, token: ApiToken) -> TokenRecord:
        used_at_ms = self._keeper.tokens.used_at_ms(token)
        return TokenRecord(
            name=token.id,
            identity=token.id,
            type=TOKEN,
            owner=token.owner,
            description=token.description,
            roles=None if token.roles is None else list(token.roles),
            state=token.state(self._users(), self._wall_ms()),
            created_at=utc_text(as_datetime(token.created_at_ms)),
            expires_at=utc_text(as_datetime(token.expires_at_ms)),
            used_at=None if used_at_ms is None else utc_text(as_datetime(used_at_ms)),
        )

    def _wall_ms(self) -> int:
        return int(self._container.clock.wall_ms())

    def _found(self, request: Request) -> ApiToken:
        request.only()
        token = self._keeper.tokens.get(request.subject())
        if token is None:
            raise Refused(NOT_FOUND, f"no API token {request.subject():.50}")
        return token

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        return Response(body=self._record(self._found(request)).as_map())

    def _create(self, request: Request, caller: Caller) -> Response:
        """Make a token of the user `owner`, or of the caller; the response has its secret.

        A token of another user also needs the right to edit users. A client that has logged in by a
        token makes none: a token that leaks would else never end.
        """
        request.only("owner", "description", "roles", "expires_in_s")
        if self._keeper.refusal is not None:
            raise Refused(CONFLICT, self._keeper.refusal)
        if caller.identity.issuer == ISSUER:
            raise Refused(FORBIDDEN, "an API token makes no other: log in with a password")
        owner = request.text("owner", "") or caller.identity.user
        if not owner:
            raise Refused(BAD_REQUEST, "a token belongs to a user: log in, or name an owner")
        if owner != caller.identity.user:
            caller.demand(EDIT, Resource(MANAGEMENT, "users"))
        made = self._made(request, owner)
        body = {**self._record(made.token).as_map(), "token": made.secret}
        return Response(status=CREATED, description="Created", body=body)

    def _made(self, request: Request, owner: str) -> NewToken:
        """Return a new token that a request describes, stored in place of old ones if need be."""
        users, now_ms = self._users(), self._wall_ms()
        has_roles = request.arguments.get("roles") is not None
        try:
            made = new_token(
                owner,
                users,
                roles=request.texts("roles", at_most=ROLES_MAX) if has_roles else None,
                file_roles=self._container.access.file_roles_of(owner) if has_roles else (),
                description=_description_in(request),
                expires_in_s=request.number(
                    "expires_in_s", LIFE_DEFAULT_S, low=LIFE_MIN_S, high=LIFE_MAX_S
                ),
                wall_ms=now_ms,
            )
            old = self._keeper.tokens.room_for(owner, users, now_ms)
        except ApiTokenError as error:
            raise Refused(CONFLICT, str(error)) from None
        for each in old:
            self._keeper.remove(each)
        self._keeper.add(made.token)
        return made

    def _delete(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Revoke a token, from the next request on."""
        self._keeper.remove(self._found(request))
        return Response(status=NO_CONTENT, description="No Content")


def _description_in(request: Request) -> str:
    description = request.text("description", "")
    if len(description) > DESCRIPTION_CHARS_MAX or not description.isprintable():
        raise Refused(
            BAD_REQUEST,
            f"a description has at most {DESCRIPTION_CHARS_MAX} characters, none of control",
        )
    return description
