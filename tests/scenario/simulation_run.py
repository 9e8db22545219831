"""A world with its clients: who is connected, and how much of their output has arrived."""

from __future__ import annotations

import random
from typing import Final

from broker.amqp.outcomes import State
from broker.amqp.performatives import Open
from broker.amqp.types import UInt
from broker.links.uniqueness import ENFORCEMENT_POLICY, SOLE_CONNECTION
from tests.scenario.simulation_client import Client, ClientLink, ClientSession
from tests.scenario.simulation_edge import Edge
from tests.scenario.simulation_records import Wrong
from tests.scenario.simulation_world import Setting, World

CONTAINERS: Final = ("ann", "bob", "cay", "dan")

WRAP: Final = 0xFFFF_FFFE
"""Start value for counters which soon wrap to zero."""

TURNS_MAX: Final = 1000


class Run:
    """A world with its clients; `draw` is the random source of the operation applied last."""

    def __init__(self, setting: Setting) -> None:
        self.world = World(setting)
        self.queues = setting.queues
        self.topics = setting.topics
        self.clients: dict[int, Client] = {}
        self.leaving: list[Client] = []
        "Clients that have closed, until the broker has closed, too."
        self.draw = random.Random(0)
        self.wanted: ClientLink | None = None
        "The link that the next attach is to steal, or to come back for."
        self.unsettled: dict[bytes, State | None] | None = None
        "The unsettled map of the next attach."
        self.former: dict[str, ClientLink] = {}
        "The receiver that each container has lost last, or detached without closing it."

    def begin_with(self, world: World) -> None:
        """Continue with another broker; all clients have lost their connections."""
        self.world = world
        self.clients.clear()
        self.leaving.clear()
        self.wanted = None

    # -- the network

    def everybody(self) -> list[Client]:
        return [*self.clients.values(), *self.leaving]

    def carry_some(self) -> None:
        """Let part of what is under way on one connection arrive."""
        everybody = self.everybody()
        if everybody:
            client = self.draw.choice(everybody)
            if self.draw.random() < 0.5:
                at_most = len(client.edge.unread)
                client.edge.feed(
                    self.draw.choice((at_most, at_most, self.draw.randint(0, at_most)))
                )
            elif client.reads:
                client.edge.fetch(self.draw.choice((1, 3, 1000)), client.took)
        self._forget_the_gone()

    def carry_all(self) -> int:
        """Deliver everything, and the answers to it; return the number of turns until all is still.

        Return 0 if nothing was under way. Raise Wrong after TURNS_MAX turns.
        """
        turns = -1
        moved = True
        while moved:
            moved = False
            turns += 1
            if turns > TURNS_MAX:
                raise Wrong("the network does not come to rest")
            for client in self.everybody():
                edge = client.edge
                if edge.unread and not edge.is_closed:
                    moved = True
                    edge.feed(len(edge.unread))
                if edge.unfetched and client.reads:
                    moved = True
                    edge.fetch(len(edge.unfetched), client.took)
        self._forget_the_gone()
        return turns

    def _forget_the_gone(self) -> None:
        self.leaving = [client for client in self.leaving if not client.is_gone()]
        for who, client in list(self.clients.items()):
            if client.is_gone():
                del self.clients[who]

    # -- what an operation needs

    def client(self, who: int) -> Client:
        """Return client `who`; connect it if it is not connected."""
        client = self.clients.get(who)
        if client is None or client.is_closing:
            if client is not None:
                self.leaving.append(client)
            client = self.clients[who] = self.connect()
        if not client.is_open:
            self.let_answer(client)
        return client

    def connect(self) -> Client:
        draw = self.draw
        sole = draw.random() < 0.2
        edge = Edge(self.world, draw.choice((200, 1000, 1 << 20, 1 << 20)))
        self.world.edges.append(edge)
        lost = list(self.former) if draw.random() < 0.8 else []
        opening = Open(
            container_id=draw.choice(lost or CONTAINERS),
            max_frame_size=draw.choice((512, 512, 4096, 1 << 20)),
            desired_capabilities=[SOLE_CONNECTION] if sole else [],
            properties={ENFORCEMENT_POLICY: UInt(draw.randint(0, 1))} if sole else {},
        )
        return Client(edge, opening)

    def let_answer(self, client: Client) -> None:
        """Let everything of `client` arrive, and let it read the answers unless it is slow."""
        edge = client.edge
        edge.feed(len(edge.unread))
        if client.reads:
            edge.fetch(len(edge.unfetched), client.took)

    def session(self, who: int) -> ClientSession | None:
        """Return a session of client `who`, begun if it has none; None if it could not connect."""
        client = self.client(who)
        sessions = client.live_sessions()
        may_begin = client.is_open and not client.is_closing and len(client.sessions) < 3
        if may_begin and (not sessions or self.draw.random() < 0.05):
            client.begin(
                window=self.draw.choice((3, 10, 1000)),
                first_transfer=self.draw.choice((0, WRAP)),
                first_delivery=self.draw.choice((0, WRAP)),
            )
            self.let_answer(client)
            sessions = client.live_sessions()
        return self.draw.choice(sessions) if sessions else None

    def has_received(self, session: ClientSession) -> bool:
        """Return whether a delivery can be settled; if not yet, grant credit and wait for one."""
        if not session.received:
            for link in session.receivers():
                if link.credit == 0:
                    link.grant(5)
            self.let_answer(session.client)
        return bool(session.received)

    def lose_receiver(self, client: Client) -> None:
        """Remember a receiver with unsettled deliveries of a client that loses its connection."""
        sessions = client.live_sessions()
        links = [link for each in sessions for link in each.receivers() if each.unsettled_of(link)]
        if links:
            self.former[client.container_id] = self.draw.choice(links)

    def temporary(self, kind: str) -> str | None:
        """Return the address of a temporary node that exists or existed; None if there was none."""
        nodes = [
            link.address
            for client in self.everybody()
            for session in client.sessions.values()
            for link in session.links.values()
            if link.dynamic and link.address is not None and link.kind == kind
        ]
        return self.draw.choice(nodes) if nodes else None
