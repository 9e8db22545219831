"""The cost of rights at an attach, without sockets: decisions by a thousand rules, one process.

    python -P tests/bench/attaching.py 20000

Half of the rules deny, and all are about the client that asks. It asks with `Peer.may`, by which
links ask when they attach; and it attaches senders, by frames that are made here, outside the
measured calls. Run it as a file with -P, so that the installed, compiled package is used and not
the sources of the checkout.

It prints one JSON object: thread CPU time in µs per decision, for names without and with
wildcards; in ms, of the slowest decision on 600 patterns by chance, by these rules and by rules
that are made to be slow; in µs, per attach of
a sender to a queue that exists, with and without the rules; and whether the engine is compiled.
"""

import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Final

import broker.amqp.connection as connection_module
from broker.amqp.encode import BytesWriter
from broker.amqp.frames import AMQP_HEADER, put_frame
from broker.amqp.performatives import Attach, Begin, Detach, Open
from broker.amqp.terminus import Source, Target
from broker.app import App
from broker.links.peer import Peer
from broker.links.transport import Transport
from broker.log_lines import configure_logging
from broker.security.access import AccessRules
from broker.security.entrance import AMQP, Entrance
from broker.security.identity import APPLICATION, Identity
from broker.security.resources import QUEUE, TOPIC, Resource
from broker.security.rules import Rule, rule_of
from broker.settings import load_settings

RULES: Final = 1_000
ROLE: Final = "shop"
"""The only role of the user, which all rules name. The built-in roles have rules of their own."""

EACH: Final = RULES // 2
WINDOW: Final = 1 << 30
WORDS: Final = 32
"""Maximum words of a pattern that is compared at all."""

LINKS: Final = 40
"""Links of one connection: from 100 frames on the broker would make it wait for its turn."""

WORST_OF: Final = 5
MIXED: Final = ("*", "*", "*", "secret-1", "news-1", "region-1", "prices", "a")
PATTERNS: Final = 600
SLOW: Final = 10
"""Number of the slowest patterns, which are asked for again."""

TANGLED_WORDS: Final = 8
DENIED_OF: Final = 10


def rules() -> list[Rule]:
    """Return rules that deny names and rules that allow them, with words and wildcards first."""
    denied = [[f"queue:secret-{n}.#", f"topic:*.secret-{n}"] for n in range(EACH)]
    allowed = [
        [f"queue:shop-{n}.#", f"topic:news-{n}.#", f"topic:region-{n}.*.prices"]
        for n in range(RULES - EACH)
    ]
    tables = [
        {"id": f"{effect}-{n}", "effect": effect, "who": [f"role:{ROLE}"], "can": can, "on": on}
        for effect, can, each in (
            ("deny", ["*"], denied),
            ("allow", ["send", "receive", "subscribe", "create"], allowed),
        )
        for n, on in enumerate(each)
    ]
    return [rule_of(table, str(table["id"])) for table in tables]


class Wire(Transport):
    """Drops the bytes that a peer writes."""

    def write(self, chunks: list[bytes]) -> None:
        pass

    def pause(self) -> None:
        raise AssertionError("nothing large is sent here")

    def resume(self) -> None:
        raise AssertionError("nothing large is sent here")

    def close(self) -> None:
        raise RuntimeError("the broker has closed the connection")


class Client:
    """A client of the broker, with a session, whose user has one role."""

    def __init__(self, app: App, role: str, name: str = "attaching") -> None:
        entrance = Entrance(listener=AMQP, kind=AMQP, host="127.0.0.1")
        self.peer: Final = Peer(app.container, Wire(), entrance)
        self._out = BytesWriter()
        self._out.write(AMQP_HEADER)
        put_frame(self._out, 0, Open(container_id=name))
        begin = Begin(next_outgoing_id=0, incoming_window=WINDOW, outgoing_window=WINDOW)
        put_frame(self._out, 0, begin)
        self._send()
        self.peer.identity = Identity("ada", roles=frozenset({role}))  # as if it had logged in

    def _send(self) -> int:
        data, self._out = self._out.getvalue(), BytesWriter()
        before = time.thread_time_ns()
        self.peer.receive(data)
        return time.thread_time_ns() - before

    def attach(self, address: str) -> int:
        """Attach a sender and detach it; return the CPU time of the attach in ns."""
        attach = Attach(
            name=address,
            handle=0,
            role=False,
            source=Source(address="here"),
            target=Target(address=address, capabilities=["queue"]),
            initial_delivery_count=0,
        )
        put_frame(self._out, 0, attach)
        spent = self._send()
        put_frame(self._out, 0, Detach(handle=0, closed=True))
        self._send()
        return spent

    def decide(self, verb: str, resource: Resource) -> tuple[int, bool]:
        """Ask for a right; return the CPU time in ns, and whether the client has it."""
        before = time.thread_time_ns()
        decision = self.peer.may(verb, resource)
        return time.thread_time_ns() - before, bool(decision.allowed)


def deciding(client: Client, count: int, *, wildcards: bool) -> float:
    """Return the mean CPU time of a decision in µs. Every second one is a refusal."""
    spent, given = 0, 0
    for number in range(count):
        rule, refused = number // 2 % EACH, number % 2
        if wildcards:
            name = f"*.secret-{rule}.#" if refused else f"region-{rule}.*.prices"
            taken, allowed = client.decide("subscribe", Resource(TOPIC, name, is_pattern=True))
        else:
            name = f"secret-{rule}.orders" if refused else f"shop-{rule}.orders"
            taken, allowed = client.decide("send", Resource(QUEUE, name))
        spent += taken
        given += allowed
    if given != (count + 1) // 2:
        raise RuntimeError(f"{given} of {count} requests were allowed, not every second one")
    return spent / 1000 / count


def tangled_rules(chance: random.Random) -> list[Rule]:
    """Return rules of few words and many wildcards, so that each overlaps with many patterns.

    No operator writes so many of them; they bring a comparison to its limit of steps.
    """
    return [
        rule_of(
            {
                "id": f"tangled-{number}",
                "effect": "allow" if number % DENIED_OF else "deny",
                "who": [f"role:{ROLE}"],
                "can": ["subscribe"],
                "on": [f"topic:{'' if number % DENIED_OF else 'z.'}{tangle(chance, 'ab*')}"],
            },
            "rule",
        )
        for number in range(RULES)
    ]


def tangle(chance: random.Random, words: Sequence[str], length: int = TANGLED_WORDS) -> str:
    """Return a pattern with up to two `#`, as many as are compared at all."""
    found = chance.choices(words, k=length)
    for _ in range(2):
        found[chance.randrange(length)] = "#"
    return ".".join(found)


def slowest_ms(client: Client, names: list[str]) -> float:
    """Return the CPU time in ms of the decision on the slowest of some patterns.

    The slowest ones are asked for again, and their median counts: one may be slowed by others.
    """

    def spent(name: str) -> int:
        return client.decide("subscribe", Resource(TOPIC, name, is_pattern=True))[0]

    slow = sorted(names, key=spent)[-SLOW:]
    return max(statistics.median(spent(name) for _ in range(WORST_OF)) for name in slow) / 1e6


def attaching_us(app: App, count: int, role: str) -> float:
    """Return the mean CPU time of an attach to a queue that exists, in µs."""
    spent, client = 0, Client(app, role, role)
    for number in range(EACH + count):
        if number % LINKS == 0:
            client = Client(app, role, f"{role}-{number}")
        taken = client.attach(f"shop-{number % EACH}.orders")
        spent += taken if number >= EACH else 0  # the first ones create the queues
    return spent / 1000 / count


def slowest_of(client: Client, rules: list[Rule], words: Sequence[str]) -> float:
    """Return the CPU time in ms of the slowest decision by `rules`, on patterns of `words`."""
    client.peer.container.adopt_access(AccessRules(rules))
    chance = random.Random(1)
    patterns = [tangle(chance, words, number % WORDS + 1) for number in range(PATTERNS)]
    return slowest_ms(client, patterns)


def main() -> None:
    count = int(sys.argv[1])
    configure_logging("console", "error")
    app = App(load_settings(None, store="memory"))
    without_us = attaching_us(app, count, APPLICATION)
    app.container.adopt_access(AccessRules(rules()))
    client = Client(app, ROLE)
    deciding(client, min(count, RULES), wildcards=False)  # warms caches, discarded
    deciding(client, min(count, RULES), wildcards=True)
    figures = {
        "plain_us": deciding(client, count, wildcards=False),
        "wildcard_us": deciding(client, count // 4, wildcards=True),
        "attach_us": attaching_us(app, count, ROLE),
        "attach_without_us": without_us,
        "slowest_ms": slowest_of(client, rules(), MIXED),
        "tangled_ms": slowest_of(client, tangled_rules(random.Random(TANGLED_WORDS)), "ab**"),
        "compiled": not str(connection_module.__file__).endswith(".py"),
    }
    if app.container.stats.access_denied:
        raise RuntimeError(f"{app.container.stats.access_denied} attaches were refused")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
