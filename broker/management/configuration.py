"""The settings of the broker as a type of management: a reload, and what a reload would do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from broker.audit.record import Actor
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.page import read_page
from broker.management.request import BAD_REQUEST, CONFLICT, Refused, Request
from broker.management.response import Response

SETTINGS: Final = "settings"

APPLIED: Final = "applied"
FOR_NEW: Final = "applied to new nodes"
UNCHANGED: Final = "unchanged"
NEEDS_RESTART: Final = "needs restart"
"""The effects of a reload on one setting."""


NO_SETTINGS: Final = "this broker has no settings that could be read again"


class WrongSettings(Exception):  # noqa: N818 - as SettingsError, which this layer does not know
    """The settings that were read are wrong; the text says what to change."""


@dataclass(frozen=True)
class ReloadEffects:
    """The effect of a reload on each setting, and on the certificates of each listener with TLS."""

    settings: Mapping[str, str]
    certificates: Mapping[str, str]


class ConfigurationSource(ABC):
    """Reads the settings of a broker again."""

    @abstractmethod
    def values(self) -> Mapping[str, Mapping[str, object]]:
        """Return `value`, `origin` and `reload` of each setting by its name, without secrets."""

    @abstractmethod
    def reload(self, *, dry_run: bool, actor: Actor, request_id: str | None) -> ReloadEffects:
        """Apply the settings and certificates as they are now, and return the effects.

        `dry_run` applies nothing. Raise WrongSettings, having changed nothing.
        """

    @abstractmethod
    def set_log_level(self, level: str) -> None:
        """Log lines of `level` and above, until the next reload. Raise WrongSettings if unknown."""


@dataclass(frozen=True, kw_only=True)
class SettingsRecord(EntityRecord):
    """The settings as a whole: there is one entity, `broker`."""


class Configuration(Entity):
    """The settings. `source` returns what reads them; None for an embedded broker."""

    type = SETTINGS
    part = "config"
    attributes = attributes_of(SettingsRecord)

    def __init__(self, source: Callable[[], ConfigurationSource | None]) -> None:
        self._source: Final = source

    def operations(self) -> Mapping[str, Operation]:
        return {
            "READ": self._read,
            "RELOAD": self._reload,
            "SET-LOG-LEVEL": self._set_log_level,
        }

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Return `settings`: `value`, `origin` and `reload` (whether one applies it) by name."""
        request.only()
        return Response(body={"settings": dict(self._known_source().values())})

    def _known_source(self) -> ConfigurationSource:
        """Return what reads the settings; Refused for an embedded broker."""
        source = self._source()
        if source is None:
            raise Refused(CONFLICT, NO_SETTINGS)
        return source

    def _set_log_level(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Log lines of `level` and above, until the settings are read again."""
        request.only("level")
        level = request.text("level")
        try:
            self._known_source().set_log_level(level)
        except WrongSettings as error:
            raise Refused(BAD_REQUEST, str(error)) from None
        return Response(body={"level": level})

    def query(self, request: Request) -> Response:
        page = read_page(request, self.attributes)
        record = SettingsRecord(name="broker", identity="broker", type=SETTINGS)
        return page.response(record.as_map() for _ in page.choose([record.name]))

    def _reload(self, request: Request, caller: Caller) -> Later:
        """Read the settings again, and apply those that need no restart.

        With `dry_run` nothing is applied. The response has `settings`: the effect on each setting,
        which is `applied`, `unchanged` or `needs restart`; and `certificates`: of each listener
        with TLS, its certificates, and what is new.
        """
        request.only("dry_run")
        source, dry_run = self._known_source(), request.flag("dry_run")

        async def answer() -> Response:
            # later: a reload ends in a round of work, which a request must not begin
            try:
                effects = source.reload(
                    dry_run=dry_run, actor=caller.actor(), request_id=caller.request_id
                )
            except WrongSettings as error:
                return Response(status=CONFLICT, description=str(error))
            return Response(
                body={
                    "dry_run": dry_run,
                    "settings": dict(effects.settings),
                    "certificates": dict(effects.certificates),
                }
            )

        return Later(answer)
