"""A broker without sockets whose clients exchange their frames with it over WebSocket."""

from __future__ import annotations

from typing import Final

from websockets.frames import Frame, Opcode
from websockets.protocol import State

from broker.listener_settings import WS
from broker.security.entrance import Entrance
from broker.websocket.connection import WebSocketConnection
from broker.websocket.limits import MESSAGE_SENT_MAX
from tests.support.broker import Broker, Client, RecordingOutlet
from tests.support.websocket_frames import client_of

WEB: Final = "web"
"""The name of the listener."""


class WebSocketOutlet(RecordingOutlet):
    """Sends what a peer writes through both ends of a WebSocket; records what the client reads."""

    def __init__(self, max_frame_size: int) -> None:
        super().__init__()
        self.server: Final = WebSocketConnection(
            path="/", origins=(), max_frame_size=max_frame_size
        )
        self.client: Final = client_of()
        assert self.to_broker() == b""
        self._to_client()
        assert self.client.state is State.OPEN

    def write(self, chunks: list[bytes]) -> None:
        assert not self.closed, "written after close"
        self.writes += 1
        self.server.send(chunks, MESSAGE_SENT_MAX)
        self._to_client()

    def to_broker(self, data: bytes = b"") -> bytes:
        """Return the AMQP that the broker reads when the client sends `data` in one message."""
        if data:
            self.client.send_binary(data)
        found = [self.server.receive(each) for each in self.client.data_to_send() if each]
        while self.server.is_behind:
            found.append(self.server.go_on())
        assert not self.server.failure, self.server.failure
        return b"".join(found)

    def _to_client(self) -> None:
        self.client.receive_data(self.server.to_send())
        for event in self.client.events_received():
            if isinstance(event, Frame):
                assert event.opcode is Opcode.BINARY
                self.data += event.data


class WebSocketClient(Client):
    """A client of the listener `web`."""

    transport: WebSocketOutlet

    def __init__(self, broker: Broker) -> None:
        outlet = WebSocketOutlet(int(broker.container.limits.max_frame_size))
        way_in = Entrance(listener=WEB, kind=WS, host="127.0.0.1", port=1)
        super().__init__(broker, transport=outlet, way_in=way_in)

    def send_bytes(self, data: bytes) -> None:
        if self.peer.is_open:
            self.transport.server.lift_limits()
        super().send_bytes(self.transport.to_broker(data))


class WebSocketBroker(Broker):
    """A broker all of whose clients come over WebSocket."""

    def dial(self) -> Client:
        return WebSocketClient(self)
