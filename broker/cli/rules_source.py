"""The rules that the commands of `jms-broker acl` are about: of a file, or a running broker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from broker.cli.broker_url import without_password
from broker.cli.client_tls import Ca, Cert, Key
from broker.cli.ending import EXIT_USAGE, fail
from broker.cli.managing import BrokerAt, Timeout, Token
from broker.cli.messages import ANSWER_TIMEOUT_S
from broker.cli.printing import Record
from broker.cli.shard_option import ShardAsUrl

if TYPE_CHECKING:
    from broker.cli.requests import Requests
    from broker.security.access import AccessRules
    from broker.security.question import AccessQuestion
    from broker.security.resources import Resource

ACL: Final = "acl"


@dataclass(frozen=True, kw_only=True)
class RulesVerdict:
    """The problems of rules, each with `rule` and `problem`, and how many rules there are."""

    problems: Sequence[Record]
    counts: str


class RulesSource(ABC):
    """The rules that a command is about; `name` is for people."""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    @abstractmethod
    def check(self) -> RulesVerdict:
        """Return the problems of the rules."""

    @abstractmethod
    def records(self, *, built_in: bool) -> list[Record]:
        """Return the rules by id, then the limits; those of built-in roles only if requested."""

    @abstractmethod
    def explain(self, question: AccessQuestion, resource: str) -> Record:
        """Return a decision with its reasons, and `limits`, those of the user."""


class RulesOfFile(RulesSource):
    """The rules of a file. A wrong file, or a wrong resource, ends the command."""

    def __init__(self, file: Path) -> None:
        super().__init__(str(file))
        self.rules: Final = rules_of(file)

    def check(self) -> RulesVerdict:
        found = [{"rule": each.rule, "problem": each.text} for each in self.rules.check()]
        own = sum(not rule.is_built_in for rule in self.rules.rules)
        return RulesVerdict(
            problems=found,
            counts=_counts(own, len(self.rules.roles), len(self.rules.limits)),
        )

    def records(self, *, built_in: bool) -> list[Record]:
        found: list[Record] = [
            rule.record() for rule in self.rules.rules if built_in or not rule.is_built_in
        ]
        return [*found, *(limit.record() for limit in self.rules.limits)]

    def explain(self, question: AccessQuestion, resource: str) -> Record:
        asked = canonical(resource, question.verb)
        explanation = question.explained_by(self.rules, asked).record()
        return {**explanation, "limits": self.rules.limits_of(question.identity()).text()}


class RulesOfBroker(RulesSource):
    """The rules that a running broker decides by, with the roles that its users have."""

    def __init__(self, requests: Requests, url: str) -> None:
        super().__init__(without_password(url))
        self._requests: Final = requests

    def check(self) -> RulesVerdict:
        told = self._requests.ask("CHECK", ACL, "rules")
        numbers = [cast("int", told[key]) for key in ("rules", "roles", "limits")]
        return RulesVerdict(
            problems=cast("Sequence[Record]", told["problems"]), counts=_counts(*numbers)
        )

    def records(self, *, built_in: bool) -> list[Record]:
        found = [
            {"id": each["name"], **each}
            for each in self._requests.records(ACL)
            if built_in or not each["built_in"]
        ]
        return sorted(found, key=lambda each: each["effect"] == "limit")

    def explain(self, question: AccessQuestion, resource: str) -> Record:
        return self._requests.ask(
            "EXPLAIN",
            ACL,
            "decision",
            verb=question.verb,
            resource=resource,
            user=question.user or None,
            roles=list(question.roles) or None,
            mechanism=question.mechanism or None,
            client_id=question.client_id or None,
            listener=question.listener or None,
            more={"from": question.host or None},
            tls=question.is_tls,
        )


def _counts(rules: int, roles: int, limits: int) -> str:
    """Return the numbers of rules, roles and limits for people."""
    return f"rules {rules}, roles {roles}{f', limits {limits}' if limits else ''}"


def rules_of(file: Path) -> AccessRules:
    """Return the rules of a file; an error in it ends the command with one line."""
    from broker.security.rules_file import RulesFileError, read_rules

    try:
        return read_rules(file)
    except RulesFileError as error:
        fail(str(error))


def canonical(text: str, verb: str, *, place: str = "") -> Resource:
    """Return the resource that an operator typed; a wrong one ends the command.

    `place` begins the error.
    """
    from broker.management.asked_resource import asked_resource
    from broker.routing.addresses.prefixes import Prefixes
    from broker.security.resources import ResourceError

    try:
        return asked_resource(text, verb, Prefixes())
    except ResourceError as error:
        fail(f"{place}{error}", EXIT_USAGE)


@dataclass(frozen=True)
class RulesPlace:
    """The options for a running broker, which is asked if no file is given."""

    context: typer.Context
    url: Annotated[
        str | None,
        typer.Option(
            envvar="JMS_BROKER_URL",
            help="Without FILE: a running broker, amqp://USER:PASSWORD@HOST:PORT, amqps://… or"
            " https://…. The user needs the right to view management:acl.",
            show_default=False,
        ),
    ] = None
    token: Token = None
    timeout: Timeout = ANSWER_TIMEOUT_S
    ca: Ca = None
    cert: Cert = None
    key: Key = None
    shard: ShardAsUrl = None

    @contextmanager
    def opened(self, file: Path | None) -> Iterator[RulesSource]:
        """Open the rules for the block; an error in it ends the command with one line."""
        if file is not None:
            source = self.context.get_parameter_source("url")
            if source is not None and source.name == "COMMANDLINE":
                fail(f"{file} is a file of rules, --url names a broker: give one", EXIT_USAGE)
            yield RulesOfFile(file)
            return
        if self.url is None:
            fail("give a file of rules, or a running broker by --url", EXIT_USAGE)
        at = BrokerAt(
            self.url,
            token=self.token,
            timeout=self.timeout,
            ca=self.ca,
            cert=self.cert,
            key=self.key,
        )
        with at.opened() as requests:
            yield RulesOfBroker(requests, self.url)


def as_table(record: Record) -> dict[str, object]:
    """Return an explanation for people: near misses as a text, limits only if there are any."""
    near = cast("Sequence[Mapping[str, object]]", record["near_misses"])
    told = dict(record)
    told["near_misses"] = ", ".join(f"{each['rule']} ({each['failed']})" for each in near)
    return told
