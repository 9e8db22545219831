"""The engine without sockets: frames in, routing, frames out, dispositions, in one process.

    python -P tests/bench/engine.py 1000000

It drives the broker's own `Peer`s as the net layer does, with a sender and a receiver whose frames
are made and read here, outside the measured calls. A sender's read holds up to 250 transfers, as
from a socket under load. Run it as a file with -P, so that the installed, compiled package is used
and not the sources of the checkout.

It prints one JSON object: thread CPU time in µs per message, all of it and the part for the
receiver's dispositions and credit; and whether the engine is compiled.
"""

import json
import sys
import time
from collections.abc import Iterator
from struct import Struct
from typing import Final

import broker.amqp.connection as connection_module
from broker.amqp.decode import descriptor_at
from broker.amqp.descriptors import FLOW, TRANSFER
from broker.amqp.encode import BytesWriter
from broker.amqp.frames import AMQP_FRAME, AMQP_HEADER, begin_frame, end_frame, put_frame
from broker.amqp.outcomes import ACCEPTED
from broker.amqp.performatives import Attach, Begin, Flow, Open, put_disposition, read_flow
from broker.amqp.terminus import Source, Target
from broker.app import App
from broker.links.peer import Peer
from broker.links.transport import Transport
from broker.log_lines import configure_logging
from broker.security.entrance import AMQP, Entrance
from broker.settings import load_settings

BATCH: Final = 250
CREDIT: Final = 1000
BODY: Final = b"x" * 100
WINDOW: Final = 1 << 30
ADDRESS: Final = "engine"

MESSAGE: Final = b"\x00\x53\x70\xc0\x02\x01\x42" + b"\x00\x53\x75\xa0" + bytes([len(BODY)]) + BODY
# transfer: handle 0, delivery-id, a tag of 8 bytes, message-format 0, settled false
TRANSFER_HEAD: Final = b"\x02\x00\x00\x00" + b"\x00\x53\x14\xc0\x13\x05" + b"\x43\x70"
TRANSFER_FRAME: Final = Struct(f">I{len(TRANSFER_HEAD)}sI2sQ2s{len(MESSAGE)}s")


class Wire(Transport):
    """Keeps the bytes that a peer writes; `frames` parses them."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, chunks: list[bytes]) -> None:
        self._chunks += chunks

    def pause(self) -> None:
        raise AssertionError("nothing large is sent here")

    def resume(self) -> None:
        raise AssertionError("nothing large is sent here")

    def close(self) -> None:
        raise RuntimeError("the broker has closed the connection")

    def frames(self) -> Iterator[tuple[int, bytes, int, int]]:
        """Yield every frame since the last call: descriptor, data, position behind it, end."""
        data, self._chunks = b"".join(self._chunks), []
        at = len(AMQP_HEADER) if data.startswith(AMQP_HEADER) else 0
        while at < len(data):
            end = at + int.from_bytes(data[at : at + 4])
            if end - at > 8:
                code, behind = descriptor_at(data, at + 8, end)
                yield int(code), data, int(behind), end
            at = end


class End:
    """One client: its bytes go straight into its peer, whose CPU time is added up."""

    def __init__(self, app: App, name: str, attach: Attach) -> None:
        self.wire = Wire()
        self.spent_ns = 0
        self._peer = Peer(app.container, self.wire, Entrance(listener=AMQP, kind=AMQP, host=name))
        out = BytesWriter()
        out.write(AMQP_HEADER)
        put_frame(out, 0, Open(container_id=name))
        begin = Begin(next_outgoing_id=0, incoming_window=WINDOW, outgoing_window=WINDOW)
        put_frame(out, 0, begin)
        put_frame(out, 0, attach)
        self.send(out.getvalue())

    def send(self, data: bytes) -> None:
        """Hand `data` to the engine as one read from a socket, and measure the CPU time."""
        before = time.thread_time_ns()
        self._peer.receive(data)
        self.spent_ns += time.thread_time_ns() - before


class Sender(End):
    """Sends as much as its credit allows, a batch at a time."""

    def __init__(self, app: App) -> None:
        attach = Attach(
            name="in",
            handle=0,
            role=False,
            source=Source(address="here"),
            target=Target(address=ADDRESS, capabilities=["queue"]),
            initial_delivery_count=0,
        )
        super().__init__(app, "sender", attach)
        self.sent = 0
        self._limit = 0  # delivery-count at which credit ends

    def send_batch(self, most: int) -> int:
        """Send up to `most` messages; return how many."""
        self._read_credit()
        count = min(most, BATCH, self._limit - self.sent)
        if count <= 0:
            raise RuntimeError("the engine gives no credit")
        pack, size = TRANSFER_FRAME.pack, TRANSFER_FRAME.size
        frames = [
            pack(size, TRANSFER_HEAD, number, b"\xa0\x08", number, b"\x43\x42", MESSAGE)
            for number in range(self.sent, self.sent + count)
        ]
        self.sent += count
        self.send(b"".join(frames))
        return count

    def _read_credit(self) -> None:
        for code, data, at, end in self.wire.frames():
            if code == FLOW:
                flow = read_flow(data, at, end)
                if flow.link_credit >= 0:
                    self._limit = int(flow.delivery_count + flow.link_credit)


class Receiver(End):
    """Accepts deliveries, a batch at a time in one range, and renews its credit."""

    def __init__(self, app: App) -> None:
        attach = Attach(
            name="out",
            handle=0,
            role=True,
            source=Source(address=ADDRESS, capabilities=["queue"]),
            target=Target(address="here"),
        )
        super().__init__(app, "receiver", attach)
        self.received = 0
        self.send(self._flow())

    def accept_all(self) -> None:
        """Read the engine's output and accept every delivery in it."""
        got = sum(1 for code, _, _, _ in self.wire.frames() if code == TRANSFER)
        if not got:
            raise RuntimeError("the engine delivers nothing")
        first, last = self.received, self.received + got - 1
        self.received += got
        out = BytesWriter()
        start = begin_frame(out, AMQP_FRAME, 0)
        put_disposition(out, role=True, first=first, last=last, settled=True, state=ACCEPTED)
        end_frame(out, start)
        self.send(out.getvalue() + self._flow())

    def _flow(self) -> bytes:
        out = BytesWriter()
        flow = Flow(
            next_incoming_id=self.received,
            incoming_window=WINDOW,
            next_outgoing_id=0,
            outgoing_window=WINDOW,
            handle=0,
            delivery_count=self.received,
            link_credit=CREDIT,
        )
        put_frame(out, 0, flow)
        return out.getvalue()


def moved(sender: Sender, receiver: Receiver, count: int) -> tuple[float, float]:
    """Move `count` messages through the engine.

    Return the CPU time in µs per message, and the part of it that settling took.
    """
    before_in, before_out = sender.spent_ns, receiver.spent_ns
    goal = receiver.received + count
    while receiver.received < goal:
        sender.send_batch(goal - receiver.received)
        receiver.accept_all()
    settling = (receiver.spent_ns - before_out) / 1000 / count
    return (sender.spent_ns - before_in) / 1000 / count + settling, settling


def main() -> None:
    count = int(sys.argv[1])
    configure_logging("console", "error")
    app = App(load_settings(None, store="memory"))
    receiver, sender = Receiver(app), Sender(app)
    moved(sender, receiver, max(count // 10, BATCH))  # warms caches, discarded
    cpu_us, settling_us = moved(sender, receiver, count)
    compiled = not str(connection_module.__file__).endswith(".py")
    print(json.dumps({"cpu_us": cpu_us, "settling_us": settling_us, "compiled": compiled}))


if __name__ == "__main__":
    main()
