"""The pages that change nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Final, final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from broker.http.api.dead_letters import dead_letter_queues
from broker.http.api.endpoint import GET, POST
from broker.http.api.json_values import plain
from broker.http.api.message_life import life_of
from broker.http.console.attention import Attention
from broker.http.console.changes import MAKERS, listing_of, place_of
from broker.http.console.entry import Guest
from broker.http.console.forms import Form
from broker.http.console.link_rates import LinkRates
from broker.http.console.listings import LISTINGS
from broker.http.console.message_views import body_forms, jms_headers
from broker.http.console.pipeline_audit import read_audit
from broker.http.console.reader import EndpointReader
from broker.http.console.rendering import PageTemplates
from broker.http.console.sampling import Sampler, curve, spark
from broker.http.console.scheduled import scheduled_messages
from broker.http.console.topology import picture_of
from broker.http.console.values import shown, table_of
from broker.http.open_streams import MEDIA_TYPE
from broker.http.shared_reading import SharedReading
from broker.http.site import Site
from broker.jms.ids import message_id_text
from broker.management.entity import VIEW
from broker.management.request import NOT_FOUND, Refused
from broker.security.resources import MANAGEMENT, Resource

METRICS: Final = Resource(MANAGEMENT, "metrics")
MESSAGES: Final = Resource(MANAGEMENT, "messages")
EVENT_LOG: Final = Resource(MANAGEMENT, "events")
QUEUES: Final = Resource(MANAGEMENT, "queues")

LINKS_MAX: Final = "500"
"""Links, and subscriptions, in the picture of the topology: a page of the API."""

OWN: Final = ("limit", "cursor", "sort", "q", "fields", "count")
"""Parameters of lists that are no filters."""

EXPLANATIONS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "access": (
        "May a client do this?",
        "/access/explain",
        ("verb", "resource", "user", "roles", "client_id", "listener", "from"),
    ),
    "attach": (
        "What would an attach of a consumer lead to?",
        "/explain/attach",
        ("address", "kind", "container_id", "link_name", "selector"),
    ),
    "credit": (
        "Why do the producers of this address wait?",
        "/explain/credit",
        ("address", "kind"),
    ),
    "flow": (
        "Why do the consumers of this queue get nothing?",
        "/explain/flow",
        ("queue", "subscription"),
    ),
    "route": (
        "Who would get this message?",
        "/explain/route",
        ("address", "kind", "publisher", "properties"),
    ),
}
"""The questions that are answered: text, endpoint, and fields of the form."""


@final
class ReadingPages:
    """The handlers of pages."""

    def __init__(
        self, site: Site, reader: EndpointReader, *, pages: PageTemplates, sampler: Sampler
    ) -> None:
        self._site: Final = site
        self._reader: Final = reader
        self._pages: Final = pages
        self._sampler: Final = sampler
        self._attention: Final = Attention(site.container, sampler)
        self._link_rates: Final = LinkRates()
        self._shared: Final = SharedReading[Mapping[str, object]](perf_counter)

    async def overview(self, request: Request, guest: Guest) -> Response:
        """Respond with the first page: rates, totals, and what needs attention."""
        broker = await self._totals(guest)
        rates = self._sampler.rates()
        concerns = [
            each
            for each in await self._attention.concerns()
            if guest.visitor.may(VIEW, Resource(MANAGEMENT, each.part))
        ]
        highest = max([1.0, *(max(each.received, each.delivered) for each in rates)])
        return self._pages.response(
            request,
            "overview",
            guest,
            title="Overview",
            broker=broker,
            counters=broker["counters"],
            tiles=self._tiles(broker),
            rates=rates,
            highest=highest,
            received=curve([each.received for each in rates], highest),
            delivered=curve([each.delivered for each in rates], highest),
            obstacles=self._site.obstacles(),
            concerns=concerns,
            sparks={
                "received": spark([each.received for each in rates]),
                "delivered": spark([each.delivered for each in rates]),
                "connections": spark([float(each.connections) for each in rates]),
            },
        )

    async def live(self, request: Request, guest: Guest) -> Response:  # noqa: ARG002
        """Respond with the tiles of the first page, for its script where streams do not pass."""
        return JSONResponse(await self._live(guest))

    async def live_events(self, request: Request, guest: Guest) -> Response:  # noqa: ARG002
        """Respond with a stream of these tiles, which all viewers share."""
        streams, viewer = self._site.event_streams, guest
        guest.visitor.demand(VIEW, METRICS)
        streams.check_room(guest.visitor.user)

        async def new_events() -> Sequence[bytes]:
            return [f"data: {json.dumps(await self._live(viewer))}\n\n".encode()]

        def may_go_on() -> bool:
            nonlocal viewer
            self._sampler.wanted()
            visitor = viewer.visitor.now()
            if visitor is None:
                return False
            viewer = replace(viewer, visitor=visitor)
            return visitor.may(VIEW, METRICS)

        sent = streams.sent(guest.visitor.user, new_events, may_go_on)
        return StreamingResponse(sent, media_type=MEDIA_TYPE)

    async def _live(self, guest: Guest) -> Mapping[str, object]:
        broker = await self._totals(guest)
        return {"tiles": {key: value for key, _, value in self._tiles(broker)}}

    async def _totals(self, guest: Guest) -> Mapping[str, object]:
        """Return the totals of the broker, which viewers share; Refused without the right."""
        guest.visitor.demand(VIEW, METRICS)
        return await self._shared.get(partial(self._reader.read, guest, "/overview"))

    def _tiles(self, broker: Mapping[str, object]) -> list[tuple[str, str, str]]:
        """Return the key, the title and the value of each tile."""
        rates = self._sampler.rates()
        commit = self._sampler.commit_p99_ms()
        return [
            ("received", "received/s", f"{rates[-1].received:,.0f}" if rates else shown(None)),
            ("delivered", "delivered/s", f"{rates[-1].delivered:,.0f}" if rates else shown(None)),
            ("ready", "ready", shown(broker["messages"])),
            ("unsettled", "unsettled", shown(broker["acquired"])),
            ("connections", "connections", shown(broker["connections"])),
            ("commit", "commit p99", shown(None) if commit is None else f"\u2264 {commit:,.3g} ms"),
        ]

    async def list(self, request: Request, guest: Guest) -> Response:
        """Respond with a page of a list."""
        listing = listing_of(request.path_params["key"])
        query = [pair for pair in request.query_params.multi_items() if pair[1]]
        body = await self._reader.read(guest, listing.path, query=query)
        endpoint = self._reader.endpoint(GET, listing.path)
        known = {each.name: each for each in endpoint.parameters}
        following = body.get("next")
        kept = [pair for pair in query if pair[0] != "cursor"]
        return self._pages.response(
            request,
            "list",
            guest,
            title=listing.title,
            listing=listing,
            items=body["items"],
            filters=[each for each in endpoint.parameters if each.name not in OWN],
            has_search="q" in known,
            has_order="sort" in known,
            values=dict(query),
            following="" if following is None else urlencode([*kept, ("cursor", str(following))]),
            first=urlencode(kept),
            is_first="cursor" not in dict(query),
            can_be_made=listing.key in MAKERS,
        )

    async def one(self, request: Request, guest: Guest) -> Response:
        """Respond with the page of one entity, and of what belongs to it."""
        listing = listing_of(request.path_params["key"])
        if not listing.entity:
            raise Refused(NOT_FOUND, f"no {listing.noun} has a page of its own")
        name = str(request.path_params["name"])
        entity = await self._reader.read(guest, listing.entity, name=name)
        related = [
            (
                LISTINGS[path.strip("/")],
                parameter,
                await self._reader.items(guest, path, [(parameter, name)]),
            )
            for path, parameter in listing.related
        ]
        return self._pages.response(
            request,
            "one",
            guest,
            title=f"{listing.noun.capitalize()} {entity['name']}",
            listing=listing,
            name=name,
            entity=entity,
            related=related,
            chart=self._chart(str(entity["name"])) if listing.key == "queues" else None,
        )

    def _chart(self, address: str) -> Mapping[str, object]:
        """Return the curves of a queue in the last ten minutes, from its page's first view on."""
        samples = self._sampler.queues
        samples.watch(address)
        rates = samples.rates(address)
        ready = [float(each.ready) for each in rates]
        received = [each.received for each in rates]
        most_ready, most_received = max([1.0, *ready]), max([1.0, *received])
        return {
            "rates": rates,
            "ready": curve(ready, most_ready),
            "received": curve(received, most_received),
            "most_ready": most_ready,
            "most_received": most_received,
        }

    # -- messages

    async def messages(self, request: Request, guest: Guest) -> Response:
        """Respond with a page of the messages in a queue or subscription."""
        query = [pair for pair in request.query_params.multi_items() if pair[1]]
        kind, place = place_of(Form(query))
        body = await self._reader.read(guest, "/messages", query=query)
        following = body.get("next")
        kept = [pair for pair in query if pair[0] != "cursor"]
        return self._pages.response(
            request,
            "messages",
            guest,
            title=f"Messages in {place}",
            kind=kind,
            place=place,
            items=body["items"],
            values=dict(query),
            following="" if following is None else urlencode([*kept, ("cursor", str(following))]),
        )

    async def message(self, request: Request, guest: Guest) -> Response:
        """Respond with one message: its sections, its body and its life."""
        guest.visitor.demand(VIEW, MESSAGES)
        query = request.query_params.multi_items()
        kind, place = place_of(Form(query))
        name = str(request.path_params["id"])
        found = await self._reader.message(guest, name, {kind: place})
        properties = found["properties"]
        assert isinstance(properties, Mapping)
        created = plain(properties.get("creation_time"))
        life = await life_of(
            self._site.executor,
            guest.visitor.caller(""),
            address=str(found["queue"]),
            message_id=message_id_text(properties.get("message_id")) or "",
            created_ms=created if isinstance(created, int) else 0,
        )
        return self._pages.response(
            request,
            "message",
            guest,
            title=f"Message {name} in {place}",
            kind=kind,
            place=place,
            message=found,
            sections=[
                ("Properties", table_of(properties)),
                ("Application properties", table_of(found["application_properties"])),
                ("Message annotations", table_of(found["annotations"])),
            ],
            headers=jms_headers(found),
            forms=body_forms(found["body"]),
            life=life,
        )

    async def dead_letters(self, request: Request, guest: Guest) -> Response:
        """Respond with the dead-letter queues, their sources and reasons."""
        guest.visitor.demand(VIEW, MESSAGES)
        return self._pages.response(
            request,
            "dead_letters",
            guest,
            title="Dead letters",
            queues=await dead_letter_queues(self._site.container),
        )

    async def scheduled(self, request: Request, guest: Guest) -> Response:
        """Respond with the messages that wait for their delivery time, by their places."""
        guest.visitor.demand(VIEW, MESSAGES)
        return self._pages.response(
            request,
            "scheduled",
            guest,
            title="Scheduled",
            found=await scheduled_messages(self._site.container),
        )

    # -- others

    async def topology(self, request: Request, guest: Guest) -> Response:
        """Respond with the picture of clients and addresses."""
        body = await self._reader.read(guest, "/links", query=[("limit", LINKS_MAX)])
        items = body["items"]
        assert isinstance(items, list)
        named = await self._reader.items(guest, "/subscriptions", [("limit", LINKS_MAX)])
        rates = self._link_rates.look(items, int(self._site.container.clock.now_ms()))
        ready: dict[str, int] = {}
        if guest.visitor.may(VIEW, QUEUES):
            queues = self._site.container.router.queues
            found = [queues.get(str(each["address"])) for each in items]
            ready = {each.address: int(each.backlogs.waiting) for each in found if each is not None}
        return self._pages.response(
            request,
            "topology",
            guest,
            title="Topology",
            picture=picture_of(items, named.items, ready, rates=rates),
            rates=rates,
            links=items,
            lonely=[each for each in named.items if not each["consumers"]],
            problem=named.problem,
            is_cut=body["next"] is not None or named.has_more,
        )

    async def pipeline_audit(self, request: Request, guest: Guest) -> Response:
        """Respond with the result of the last audit of the event log by the pipeline."""
        guest.visitor.demand(VIEW, EVENT_LOG)
        return self._pages.response(
            request,
            "pipeline_audit",
            guest,
            title="Pipeline audit",
            audit=await read_audit(self._site.settings.audit_report),
        )

    async def config(self, request: Request, guest: Guest) -> Response:
        """Respond with all settings."""
        body = await self._reader.read(guest, "/config")
        return self._pages.response(
            request, "config", guest, title="Settings", settings=body["settings"]
        )

    async def explain(self, request: Request, guest: Guest) -> Response:
        """Respond with the forms of questions, and the answer to one of them."""
        form = Form(request.query_params.multi_items())
        asked = form.text("question")
        answer: Mapping[str, object] | None = None
        problem = ""
        if asked in EXPLANATIONS:
            _, path, fields = EXPLANATIONS[asked]
            try:
                body = question_body(form, fields)
                endpoint = self._reader.endpoint(POST, path)
                result = await self._reader.carry_out(guest, endpoint, body=body)
                assert isinstance(result.body, Mapping)
                answer = result.body
            except Refused as refused:
                problem = str(refused)
        return self._pages.response(
            request,
            "explain",
            guest,
            title="Explain",
            explanations=EXPLANATIONS,
            asked=asked,
            values=dict(form.pairs),
            answer=answer,
            problem=problem,
        )


def question_body(form: Form, fields: tuple[str, ...]) -> dict[str, object]:
    """Return the body of a question, of the fields that a form has set.

    Properties are one `name=value` on each line; a value that is a whole number is a number.
    """
    body: dict[str, object] = {name: form.text(name) for name in fields if form.text(name)}
    if "roles" in body:
        body["roles"] = form.text("roles").replace(",", " ").split()
    if "properties" in body:
        pairs = [line.partition("=") for line in form.text("properties").splitlines() if line]
        body["properties"] = {
            name.strip(): int(value) if value.strip().lstrip("-").isdecimal() else value.strip()
            for name, _, value in pairs
        }
    return body
