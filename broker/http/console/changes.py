"""Changes that operators make in the console. Each needs a form of their session.

What destroys something needs more: the name of it, typed in, or a trial of the same action.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Final, final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from broker.http.api.endpoint import DELETE, POST, PUT
from broker.http.api.kinds import QUEUES, TOKENS, TOPICS, USERS
from broker.http.console.entry import Guest
from broker.http.console.forms import Form
from broker.http.console.listings import LISTINGS, ConsoleList
from broker.http.console.reader import EndpointReader
from broker.http.console.rendering import PageTemplates
from broker.http.console.values import address_of
from broker.management.request import BAD_REQUEST, NOT_FOUND, Refused
from broker.security.api_tokens import LIFE_MAX_S

SEE_OTHER: Final = 303

MAKERS: Final = {"queues": QUEUES.one(), "topics": TOPICS.one(), "users": USERS.one()}
"""The endpoints that make an entity, by the list."""

DAY_S: Final = 86_400
DAYS_MAX: Final = LIFE_MAX_S // DAY_S
"""Maximum days after which a token ends."""

DIGITS_MAX: Final = 9

ACTIONS: Final = ("retry", "move", "copy", "delete", "deliver")

ALL: Final = "all"
CHOSEN: Final = "ids"
MATCHING: Final = "selector"

RELOAD: Final = "reload"

TRIAL_S: Final = 2.0
"""Maximum seconds for which a page awaits the end of a trial."""

TURN_S: Final = 0.02
"""Seconds between two looks at it."""


def listing_of(key: str) -> ConsoleList:
    """Return a list by its key; Refused if there is none."""
    found = LISTINGS.get(key)
    if found is None:
        raise Refused(NOT_FOUND, f"no page {key:.50} is known here")
    return found


@final
class Changes:
    """The handlers of forms; `ask` pages come before those that destroy something."""

    def __init__(self, reader: EndpointReader, pages: PageTemplates) -> None:
        self._reader: Final = reader
        self._pages: Final = pages

    # -- entities

    async def ask_removal(self, request: Request, guest: Guest) -> Response:
        """Respond with the page on which the operator types the name of an entity."""
        return await self._removal_page(request, guest, "")

    async def _removal_page(self, request: Request, guest: Guest, problem: str) -> Response:
        listing, name = self._removed(request)
        entity = await self._reader.read(guest, listing.entity, name=name)
        return self._pages.response(
            request,
            "removal",
            guest,
            status=BAD_REQUEST if problem else 200,
            title=f"{listing.removal} {listing.noun}",
            listing=listing,
            name=name,
            entity=entity,
            typed=typed_name(entity),
            problem=problem,
        )

    async def remove(self, request: Request, guest: Guest, form: Form) -> Response:
        """Remove an entity whose name was typed in."""
        listing, name = self._removed(request)
        entity = await self._reader.read(guest, listing.entity, name=name)
        if form.text("typed") != typed_name(entity):
            return await self._removal_page(request, guest, "The name does not match.")
        endpoint = self._reader.endpoint(DELETE, listing.entity)
        known = {each.name for each in endpoint.parameters}
        query = [(key, value) for key, value in form.pairs if key in known and value]
        await self._reader.carry_out(guest, endpoint, name=name, query=query)
        guest.session.notice = f"{listing.removal}: {listing.noun} {typed_name(entity)}, done."
        return to(address_of(listing.path))

    def _removed(self, request: Request) -> tuple[ConsoleList, str]:
        listing = listing_of(request.path_params["key"])
        if not listing.removal:
            raise Refused(NOT_FOUND, f"the console does not remove a {listing.noun}")
        return listing, str(request.path_params["name"])

    async def make(self, request: Request, guest: Guest, form: Form) -> Response:
        """Make a queue, a topic or a user, or change a user."""
        key = request.path_params["key"]
        listing = listing_of(key)
        if key not in MAKERS:
            raise Refused(NOT_FOUND, f"the console does not make a {listing.noun}")
        name = form.text("name")
        if not name:
            raise Refused(BAD_REQUEST, f"type the name of the {listing.noun}")
        body = _user(form) if key == "users" else {}
        endpoint = self._reader.endpoint(PUT, MAKERS[key])
        result = await self._reader.carry_out(guest, endpoint, name=name, body=body)
        made = "was created" if result.status == 201 else "is as you want it"
        guest.session.notice = f"The {listing.noun} {name} {made}."
        return to(address_of(listing.path, name))

    async def make_token(self, request: Request, guest: Guest, form: Form) -> Response:
        """Make an API token, and respond with the one page that shows its secret."""
        body: dict[str, object] = {"expires_in_s": _days(form) * DAY_S}
        body |= {name: form.text(name) for name in ("owner", "description") if form.text(name)}
        if form.text("roles"):
            body["roles"] = form.text("roles").replace(",", " ").split()
        endpoint = self._reader.endpoint(POST, TOKENS.path)
        result = await self._reader.carry_out(guest, endpoint, body=body)
        return self._pages.response(
            request, "new_token", guest, title="New API token", made=result.body
        )

    # -- messages

    async def ask_action(self, request: Request, guest: Guest) -> Response:
        """Respond with the page of an action on messages of a queue or subscription."""
        return self._action_page(request, guest, Form(request.query_params.multi_items()))

    async def _awaited(self, guest: Guest, begun: object) -> Mapping[str, object]:
        """Return a trial once it has ended, or as far as it has come after TRIAL_S."""
        assert isinstance(begun, Mapping)
        job, loop = begun, asyncio.get_running_loop()
        deadline = loop.time() + TRIAL_S
        while job["state"] == "running" and loop.time() < deadline:
            await asyncio.sleep(TURN_S)
            job = await self._reader.read(guest, "/jobs/{id:int}", name=str(job["id"]))
        return job

    def _action_page(
        self,
        request: Request,
        guest: Guest,
        form: Form,
        *,
        trial: Mapping[str, object] | None = None,
        problem: str = "",
    ) -> Response:
        return self._pages.response(
            request,
            "action",
            guest,
            status=BAD_REQUEST if problem else 200,
            title=f"{action_of(form).capitalize()} messages",
            action=action_of(form),
            place=place_of(form),
            choice=choice_of(form),
            ids=form.texts("ids"),
            selector=form.text("selector"),
            target=form.text("to"),
            trial=trial,
            problem=problem,
        )

    async def act(self, request: Request, guest: Guest, form: Form) -> Response:
        """Count the messages of an action, or begin it.

        It begins after a trial of the same action in this session, or with the name of the queue
        or subscription typed in.
        """
        body = action_body(form)
        purpose = json.dumps(body, sort_keys=True)
        endpoint = self._reader.endpoint(POST, "/message-actions")
        if form.text("step") == "trial":
            tried = await self._reader.carry_out(guest, endpoint, body={**body, "dry_run": True})
            guest.session.trial = purpose
            job = await self._awaited(guest, tried.body)
            return self._action_page(request, guest, form, trial=job)
        _, name = place_of(form)
        if guest.session.trial != purpose and form.text("typed") != name:
            problem = "Count the messages first, or type the name exactly."
            return self._action_page(request, guest, form, problem=problem)
        guest.session.trial = ""
        begun = await self._reader.carry_out(guest, endpoint, body=body)
        assert isinstance(begun.body, Mapping)
        guest.session.notice = f"Action {begun.body['id']} has begun."
        return to(address_of("/jobs"))

    # -- settings

    async def reload(self, request: Request, guest: Guest, form: Form) -> Response:
        """Show what a reload of the settings would do, or reload them after that."""
        is_trial = guest.session.trial != RELOAD or form.text("step") == "trial"
        endpoint = self._reader.endpoint(POST, "/config/reload")
        query = [("dry_run", "true")] if is_trial else []
        result = await self._reader.carry_out(guest, endpoint, query=query)
        guest.session.trial = RELOAD if is_trial else ""
        return self._pages.response(
            request,
            "reload",
            guest,
            title="Reload the settings",
            is_trial=is_trial,
            record=result.body,
        )


def to(url: str) -> Response:
    """Return a response that leads the browser to a page."""
    return RedirectResponse(url, status_code=SEE_OTHER)


def typed_name(entity: Mapping[str, object]) -> str:
    """Return the text that an operator types to remove an entity."""
    return str(entity["name"] or entity["identity"])


def action_of(form: Form) -> str:
    """Return the action of a form; Refused if there is none of that name."""
    action = form.text("action")
    if action not in ACTIONS:
        raise Refused(BAD_REQUEST, f"action must be one of {', '.join(ACTIONS)}")
    return action


def place_of(form: Form) -> tuple[str, str]:
    """Return the kind and the name of the place of messages; Refused unless there is one."""
    found = [(kind, form.exact(kind)) for kind in ("queue", "subscription") if form.exact(kind)]
    if len(found) != 1:
        raise Refused(BAD_REQUEST, "queue or subscription is needed, one of them")
    return found[0]


def choice_of(form: Form) -> str:
    """Return how messages are chosen: by their ids, a selector, or all of them."""
    if form.texts("ids"):
        return CHOSEN
    return MATCHING if form.text("selector") else ALL


def action_body(form: Form) -> dict[str, object]:
    """Return the body of a message action, as the API has it."""
    kind, name = place_of(form)
    body: dict[str, object] = {"action": action_of(form), "from": {kind: name}}
    choice = choice_of(form)
    if choice == CHOSEN:
        body["ids"] = form.texts("ids")
    elif choice == MATCHING:
        body["selector"] = form.text("selector")
    else:
        body["all"] = True
    if body["action"] in ("move", "copy"):
        body["to"] = form.text("to")
    return body


def _days(form: Form) -> int:
    """Return the days after which a token ends; Refused if the form has no such number."""
    text = form.text("days")
    is_number = text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
    if not (is_number and 1 <= int(text) <= DAYS_MAX):
        raise Refused(BAD_REQUEST, f"a token ends after 1 to {DAYS_MAX} days")
    return int(text)


def _user(form: Form) -> dict[str, object]:
    """Return the fields of a user that a form sets."""
    body: dict[str, object] = {}
    if form.exact("password"):
        body["password"] = form.exact("password")
    if form.text("roles"):
        body["roles"] = form.text("roles").replace(",", " ").split()
    if form.text("enabled"):
        body["enabled"] = form.text("enabled") == "yes"
    return body
