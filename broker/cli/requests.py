"""Requests of commands to a broker's management, over AMQP or over HTTP."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote, urlunsplit

from broker.cli.broker_url import HTTP_SCHEMES, MANAGEMENT_SCHEMES, split_url
from broker.cli.client_tls import ClientTls
from broker.cli.ending import EXIT_FAILURE, EXIT_FORBIDDEN, EXIT_NOT_FOUND, ClientError

PAGE: Final = 500

SELF_TYPE: Final = "org.amqp.management"
"""The type of the management node itself."""

FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
GONE: Final = 410
FAILURES_FROM: Final = 400
STATUSES: Final = {
    FORBIDDEN: EXIT_FORBIDDEN,
    NOT_FOUND: EXIT_NOT_FOUND,
    GONE: EXIT_NOT_FOUND,
}

Record = Mapping[str, object]


class RefusalError(ClientError):
    """The broker's refusal of a request; `status` is the status code of its response."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description, STATUSES.get(status, EXIT_FAILURE))
        self.status: Final = status


class Requests(ABC):
    """The client of a broker's management."""

    @abstractmethod
    def send(self, asked: Mapping[str, object], arguments: Mapping[str, object]) -> object:
        """Send a request and return the body of its response.

        `asked` are the application properties of the request, `arguments` the entries of its body.
        Raise RefusalError if the broker refuses the request.
        """

    @abstractmethod
    def build(self) -> str:
        """Return whether the broker is compiled, in its own word; empty if it does not say so."""

    @abstractmethod
    def connection_has_ended(self) -> bool:
        """Ask the broker for its state; return whether it is not reached any more instead."""

    @abstractmethod
    def pause(self, seconds: float) -> None:
        """Send no request for `seconds`, without being taken for a client that has gone."""

    def ask(
        self,
        operation: str,
        kind: str,
        name: str | None = None,
        *,
        properties: Mapping[str, object] | None = None,
        more: Mapping[str, object] | None = None,
        exact: Mapping[str, object] | None = None,
        **arguments: object,
    ) -> Record:
        """Send a request and return the body of its response.

        `more` are further arguments. Arguments that are None or False are left out, except those of
        `exact`, which are sent as they are. Raise RefusalError if the broker refuses the request.
        """
        asked: dict[str, object] = {"operation": operation, "type": kind, **(properties or {})}
        if name is not None:
            asked["name"] = name
        given = {
            name: value
            for name, value in {**arguments, **(more or {})}.items()
            if value is not None and value is not False
        }
        given.update(exact or {})
        body = self.send(asked, given)
        return body if isinstance(body, dict) else {"": body}

    def ask_for(
        self,
        operation: str,
        kind: str,
        *,
        properties: Mapping[str, object] | None = None,
        more: Mapping[str, object] | None = None,
    ) -> Record:
        """Ask the management node itself about entities of a kind, as `ask` asks."""
        asked = {"entityType": kind, **(properties or {})}
        return self.ask(operation, SELF_TYPE, "self", properties=asked, more=more)

    def records(
        self, kind: str, *, limit: int | None = None, **arguments: object
    ) -> Iterator[Record]:
        """Yield all entities of a kind, up to `limit`, page by page.

        One that is added or removed meanwhile may be missed.
        """
        offset = 0
        while limit is None or offset < limit:
            count = PAGE if limit is None else min(PAGE, limit - offset)
            page = self.page(kind, offset=offset, count=count, **arguments)
            yield from page
            offset += len(page)
            if len(page) < count:
                return

    def page(self, kind: str, *, offset: int, count: int, **arguments: object) -> list[Record]:
        """Return up to `count` entities of a kind, from number `offset` on."""
        found, _ = self.part(kind, offset=offset, count=count, more=arguments)
        return found

    def part(
        self,
        kind: str,
        *,
        offset: int = 0,
        count: int,
        more: Mapping[str, object] | None = None,
        **arguments: object,
    ) -> tuple[list[Record], object]:
        """Return entities as `page` does, and the one to continue after, None if not reported."""
        body = self.ask_for(
            "QUERY",
            kind,
            properties={"offset": offset, "count": count},
            more={**arguments, **(more or {})},
        )
        names, rows = body["attributeNames"], body["results"]
        assert isinstance(names, Sequence)
        assert isinstance(rows, Sequence)
        return [dict(zip(names, row, strict=True)) for row in rows], body.get("next")

    def listed(self, kind: str, sort: str, limit: int, fields: Sequence[str]) -> Sequence[Record]:
        """Return the first `limit` entities of a kind, at most 500, with the attributes `fields`.

        `sort` is an attribute, with `-` before it for the highest value first.
        """
        body = self.ask_for(
            "LIST", kind, more={"sort": sort, "limit": limit, "fields": list(fields)}
        )
        items = body["items"]
        assert isinstance(items, Sequence)
        return items

    def find(self, kind: str, name: str) -> Record | None:
        """Return the entity of that name, None if there is none."""
        try:
            return self.ask("READ", kind, name)
        except RefusalError as refusal:
            if refusal.status == NOT_FOUND:
                return None
            raise


@contextmanager
def managed(
    url: str, timeout_s: float, *, tls: ClientTls | None = None, token: str | None = None
) -> Iterator[Requests]:
    """Connect to the management of the broker at `url` for the block.

    Raise ClientError for any failure of the connection in it, URLError if `url` names no broker.
    """
    if split_url(url, MANAGEMENT_SCHEMES).scheme in HTTP_SCHEMES:
        from broker.cli.http_requests import HttpRequests

        with HttpRequests(url, timeout_s, tls=tls, token=token) as requests:
            yield requests
        return
    if token is not None:
        raise ClientError(
            "--token (JMS_BROKER_TOKEN) is for https://: over AMQP, give a token as the --password"
        )
    from broker.cli.amqp_requests import AmqpRequests
    from broker.cli.client import connected

    with connected(url, timeout_s, tls=tls) as connection:
        yield AmqpRequests(connection)


def with_user(url: str, user: str | None, password: str | None) -> str:
    """Return `url` with that user and password in place of its own; unchanged if `user` is None."""
    if user is None:
        return url
    parts = split_url(url, MANAGEMENT_SCHEMES)
    place = parts.netloc.rpartition("@")[2]
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password is not None else "")
    return urlunsplit(parts._replace(netloc=f"{login}@{place}"))
