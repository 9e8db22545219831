"""The options of the data source `amqp`, and the checks of those that a user has given.

The table in `option_table.py` has each option's values and uses. It is applied while a query is
planned, so that a mistake ends the query there, with an error that names the option, what was
given, and what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Final, cast
from urllib.parse import urlsplit

from pyspark_amqp.one_line import UserError
from pyspark_amqp.option_kinds import Position
from pyspark_amqp.option_table import BY_NAME, SECRETS, SINK, STREAM, TABLE, Option, Use

MODES: Final = {Use.BATCH: ("browse", "events"), Use.STREAM: ("lease", "events")}
"""The modes of each way to read; the first is the default."""


LEASE_BATCH_MESSAGES_MAX: Final = 100_000
"""Maximum messages that the broker leases in one batch."""


class OptionError(UserError, ValueError):
    """An error because an option is wrong; the text says why."""


SPARKS_OWN: Final = frozenset(
    {
        *("path", "checkpointlocation", "queryname", "asyncprogresstrackingenabled"),
        *("asyncprogresstrackingcheckpointintervalms", "outputmode"),
    }
)
"""Spark's own options, which users give beside ours and Spark passes on to this source."""

LEASE_ONLY: Final = (
    *("lease", "topic", "partitionBy", "leaseTtl", "failOnLeaseLoss"),
    *("maxBytesPerTrigger", "minMessagesPerTrigger", "maxTriggerDelay"),
)
EVENTS_ONLY: Final = ("kind", "storeUrl", "failOnDataLoss")
MESSAGES_ONLY: Final = (
    *("createAddress", "subscription", "selector", "includeBody", "includeRaw", "propertiesAs"),
    "pushdown",
)


class Options:
    """A user's options, checked. `str` shows no secret; instances are pickled to the executors."""

    def __init__(self, values: dict[str, object], given: frozenset[str], use: Use) -> None:
        self._values: Final = values
        self.given: Final = given
        self.use: Final = use

    def text(self, name: str) -> str | None:
        """Return the text of an option, None if it is not set."""
        return cast("str | None", self._values[name])

    def number(self, name: str) -> int:
        """Return the number (or the milliseconds) of an option, 0 if it is not set."""
        return cast("int", self._values[name] or 0)

    def is_set(self, name: str) -> bool:
        """Return whether an option is true."""
        return self._values[name] is True

    def position(self, name: str) -> Position:
        """Return the position to begin or to end at; an open one if the option is a word."""
        value = self._values[name]
        return value if isinstance(value, Position) else Position()

    def is_latest(self, name: str) -> bool:
        """Return whether an option is the word `latest`."""
        return self._values[name] == "latest"

    @property
    def mode(self) -> str:
        """Return the mode of reading: lease, browse or events."""
        return cast("str", self._values["mode"])

    @property
    def urls(self) -> tuple[str, ...]:
        """Return the URLs of the brokers, in the order in which they are tried."""
        return cast("tuple[str, ...]", self._values["url"])

    @property
    def management_url(self) -> str | None:
        """Return the URL of the broker's HTTP port, None if it is not given."""
        value = cast("tuple[str, ...] | None", self._values["managementUrl"])
        return None if value is None else value[0]

    def __repr__(self) -> str:
        shown = sorted(self.given - SECRETS)
        return f"Options({', '.join(f'{name}={self._values[name]!r}' for name in shown)})"


def check_values(given: Mapping[str, str]) -> dict[str, object]:
    """Return the values of the given options; raise OptionError for a value wrong in every use."""
    values: dict[str, object] = {}
    for name, text in given.items():
        if name.lower() in SPARKS_OWN:
            _refuse_late_commits(name, text)
        else:
            option = _known(name)
            values[option.name] = _value(option, text)
    return values


def check_any_use(given: Mapping[str, str]) -> None:
    """Raise OptionError if the options are good for no use.

    Spark does not say at first for which use they are.
    """
    told = check_values(given)
    likely = Use.BATCH
    if told.get("mode") == "lease" or any(BY_NAME[name.lower()].uses == STREAM for name in told):
        likely = Use.STREAM
    elif any(BY_NAME[name.lower()].uses == SINK for name in told):
        likely = Use.SINK
    for use in Use:
        if use is not likely and _is_good(given, use):
            return
    read_options(given, likely)


def _is_good(given: Mapping[str, str], use: Use) -> bool:
    try:
        read_options(given, use)
    except OptionError:
        return False
    return True


def read_options(given: Mapping[str, str], use: Use) -> Options:
    """Return the options for `use`, by names in any case; raise OptionError for a bad option."""
    values: dict[str, object] = {}
    for option in TABLE:
        is_for_us = use in option.uses and option.default is not None
        values[option.name] = option.kind.read(cast("str", option.default)) if is_for_us else None
    told = check_values(given)
    for name in told:
        uses = BY_NAME[name.lower()].uses
        if use not in uses:
            words = ", ".join(sorted(each.value for each in uses))
            raise OptionError(f"option {name}: it is for {words}, not for {use.value}")
    values.update(told)
    options = Options(values, frozenset(told), use)
    if use is Use.SINK:
        _check_sink(options)
    else:
        _check_source(options, values)
    _check_login(options)
    return options


def _refuse_late_commits(name: str, text: str) -> None:
    if name.lower() == "asyncprogresstrackingenabled" and text.lower() == "true":
        raise OptionError(
            f"option {name}: {text} is not supported, only false: Spark's commit log, which tells "
            "what may be settled, would be written too late"
        )


def _known(name: str) -> Option:
    option = BY_NAME.get(name.lower())
    if option is None:
        near = get_close_matches(name.lower(), list(BY_NAME), n=1)
        hint = f"did you mean {BY_NAME[near[0]].name}? " if near else ""
        allowed = ", ".join(each.name for each in TABLE)
        raise OptionError(f"option {name}: there is none; {hint}allowed: {allowed}")
    return option


def _value(option: Option, text: str) -> object:
    try:
        return option.kind.read(text)
    except ValueError:
        shown = "what is given" if option.name in SECRETS else repr(text[:100])
        raise OptionError(
            f"option {option.name}: {shown} is not allowed; allowed: {option.kind.allowed}"
        ) from None


def is_for(name: str, use: Use, mode: str) -> bool:
    """Return whether an option applies to this use and mode; an unknown option applies to none."""
    option = BY_NAME.get(name.lower())
    foreign = {each.lower() for each in _foreign(mode)}
    return option is not None and use in option.uses and option.name.lower() not in foreign


def _foreign(mode: str) -> list[str]:
    """Return the options that do not apply to `mode`."""
    foreign = [*(LEASE_ONLY if mode != "lease" else ())]
    foreign += EVENTS_ONLY if mode != "events" else MESSAGES_ONLY
    return foreign + (["startingPosition"] if mode == "lease" else [])


def _check_source(options: Options, values: dict[str, object]) -> None:
    modes = MODES[options.use]
    values["mode"] = mode = options.text("mode") or modes[0]
    if mode not in modes:
        raise OptionError(
            f"option mode: {mode!r} is not allowed for {options.use.value}; "
            f"allowed: {', '.join(modes)}"
        )
    for name in _foreign(mode):
        if name in options.given:
            raise OptionError(f"option {name}: it is not for mode {mode}")
    if mode == "events":
        _check_events(options)
    else:
        _check_messages(options)


def _check_messages(options: Options) -> None:
    address, subscription = options.text("address"), options.text("subscription")
    if options.text("topic") is not None:
        _check_topic(address, subscription)
    if (address is None) == (subscription is None):
        raise OptionError("option address: either it or the option subscription must be given")
    if options.is_latest("startingPosition"):
        raise OptionError(
            "option startingPosition: 'latest' is not allowed for mode browse, which shows what "
            'waits; allowed: earliest, a position, {"timestamp": MILLISECONDS}'
        )
    if (
        options.mode == "lease"
        and options.number("maxMessagesPerTrigger") > LEASE_BATCH_MESSAGES_MAX
    ):
        raise OptionError(
            "option maxMessagesPerTrigger: in mode lease allowed: a whole number from 1 to "
            f"{LEASE_BATCH_MESSAGES_MAX}"
        )
    if subscription is not None and options.text("topic") is None and subscription.count("/") < 2:
        raise OptionError(
            f"option subscription: {subscription!r:.100} is not allowed without the option topic; "
            f"allowed: {BY_NAME['subscription'].kind.allowed}"
        )


def _check_topic(address: str | None, subscription: str | None) -> None:
    """Raise OptionError unless the option topic is beside a subscription's name, and nothing else.

    A topic keeps no messages for a query; a subscription does.
    """
    if address is not None:
        raise OptionError(
            "option topic: it cannot be beside the option address, which names a queue; leave one "
            "of them out, and give the option subscription, any name, beside the topic"
        )
    if subscription is None:
        raise OptionError(
            "option topic: it needs the option subscription, the name under which the broker keeps "
            "the topic's messages for this query"
        )
    if "/" in subscription:
        raise OptionError(
            "option topic: it is beside the option subscription, which then is a name without /"
        )


def _check_events(options: Options) -> None:
    store = options.text("storeUrl")
    if store is None:
        return
    if not store.startswith(("postgresql://", "sqlite:///")):
        raise OptionError(
            "option storeUrl: what is given is not allowed; "
            f"allowed: {BY_NAME['storeurl'].kind.allowed}"
        )
    if options.management_url is not None:
        raise OptionError("option storeUrl: it cannot be beside the option managementUrl")


def _check_sink(options: Options) -> None:
    if options.text("replay") == "raw" and "bodyType" in options.given:
        raise OptionError("option bodyType: it is not for replay raw, which sends what is there")


def _check_login(options: Options) -> None:
    if (options.text("tls.certFile") is None) != (options.text("tls.keyFile") is None):
        raise OptionError("option tls.certFile: it and the option tls.keyFile go together")
    if options.text("tls.keyPasswordFile") is not None and options.text("tls.keyFile") is None:
        raise OptionError("option tls.keyPasswordFile: it is beside the option tls.keyFile")
    for secret in ("password", "tokenFile"):
        if options.text(secret) is not None and options.text("username") is None:
            raise OptionError(f"option username: there is a {secret}, and none")
    if options.text("tokenFile") is not None:
        _check_token(options)


def _check_token(options: Options) -> None:
    if options.text("password") is not None:
        raise OptionError("option tokenFile: it is in place of the option password")
    for url in (*options.urls, options.management_url or ""):
        parts = urlsplit(url)
        if parts.scheme in ("amqp", "http") and not _is_loopback(parts.hostname or ""):
            raise OptionError(
                "option tokenFile: others could read the token on the network; allowed: URLs of "
                "amqps and https, and of this machine"
            )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
