"""Seeds: golden frames and messages, conversations written here, and the corpus.

The corpus contains inputs that earlier runs found worth keeping: a file per entry point with an
input per line, in hex.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from librt.strings import BytesWriter

from broker.amqp.composite import FieldWriter
from broker.amqp.descriptors import FLOW
from broker.amqp.frames import AMQP_HEADER, EMPTY_FRAME, SASL_FRAME, SASL_HEADER
from broker.amqp.outcomes import ACCEPTED, RELEASED, Modified
from broker.amqp.performatives import Begin, Close, Detach, End, Open
from broker.amqp.sasl import ANONYMOUS, PLAIN
from broker.amqp.sasl_frames import SaslInit
from broker.amqp.terminus import Source, Target
from tests.fuzz.conversing import RESPONSE
from tests.fuzz.mutation import DESCRIBED, SIZE_MAX, VALUES, nested
from tests.support.frames import (
    Body,
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    flow,
    frame,
    message,
    raw_frame,
    sasl_frame,
)
from tests.support.traces import traced_bytes
from tests.wire.golden_attaches import ATTACHES
from tests.wire.golden_forms import FORMS
from tests.wire.golden_frames import FRAMES
from tests.wire.golden_messages import MESSAGES

CORPUS: Final = Path(__file__).parent / "corpus"

GOLDEN: Final = [golden.frame for golden in (*FRAMES, *ATTACHES, *FORMS)]


def corpus_of(name: str) -> list[bytes]:
    """Return the corpus of an entry point."""
    file = CORPUS / f"{name}.txt"
    return [bytes.fromhex(line) for line in file.read_text().split()] if file.exists() else []


def keep(name: str, inputs: list[bytes]) -> None:
    """Make `inputs` the corpus of an entry point, the shortest first."""
    lines = sorted({each.hex() for each in inputs}, key=lambda line: (len(line), line))
    (CORPUS / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))


def decoder() -> list[bytes]:
    return [*VALUES, *(each[8:] for each in GOLDEN), *(each.data for each in MESSAGES)]


def sections() -> list[bytes]:
    return [
        *(each.data for each in MESSAGES),
        message(durable=True, priority=9, ttl=5),
        traced_bytes(),
        DESCRIBED,
    ]


def deep_values() -> list[bytes]:
    """Return values nested as deep as an input's size allows, to be run and not mutated."""
    return [
        nested(kind, b"\x40", SIZE_MAX // width) for kind, width in enumerate([3, 9, 10, 9, 12])
    ]


def _under_a_key(value: bytes) -> bytes:
    content = b"\xa3\x01k" + value
    return b"\xd1" + (len(content) + 4).to_bytes(4) + b"\0\0\0\2" + content


def deep_messages() -> list[bytes]:
    """Return messages with such a value as the body, or in the annotations."""
    values = deep_values()
    return [
        *(DESCRIBED + value for value in values),
        *(b"\x00\x53\x72" + _under_a_key(value) for value in values),
    ]


def deep_frames() -> list[bytes]:
    """Return transfers of such messages, and flows with such a value as the properties."""
    return [
        *(_transfer(each) for each in deep_messages()),
        *(_flow(_under_a_key(value)) for value in deep_values()),
    ]


def _flow(properties: bytes) -> bytes:
    out = BytesWriter()
    fields = FieldWriter()
    for _ in range(4):
        fields.uint(0)
    for _ in range(6):
        fields.skip()
    fields.raw(properties)
    fields.close(out, FLOW)
    return raw_frame(out.getvalue())


def frames() -> list[bytes]:
    return [*GOLDEN, b"".join(GOLDEN[:8]), EMPTY_FRAME * 3]


def connection() -> list[bytes]:
    """Return golden frames on the existing session and on one of their own, and conversations."""
    session = [each for each in GOLDEN if each[5] != SASL_FRAME and each[10] not in (0x10, 0x11)]
    begin = frame(Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9), 1)
    return [
        *session,
        *(begin + each[:6] + b"\0\1" + each[8:] for each in session),
        *(b"".join(frame(body) for body in bodies) for bodies in _conversations()),
        *(_transfer(each.data) for each in MESSAGES),
    ]


def _transfer(payload: bytes) -> bytes:
    return frame(Transfer(payload=payload))


def _conversations() -> list[list[Body]]:
    """Return what clients do with the links of `conversing.scene`, and with others."""
    two = [
        Transfer(delivery_id=0, more=True, payload=message(b"one")),
        Transfer(delivery_id=None, tag=None, payload=b"\x00\x53\x75\xa0\x01x"),
    ]
    return [
        [Transfer(payload=message(b"", durable=True)), Transfer(delivery_id=1)],
        [*two, Transfer(delivery_id=1, settled=True, payload=message(to="q", ttl=1))],
        [two[0], Transfer(delivery_id=0, aborted=True), Detach(handle=0, closed=True)],
        [Disposition(first=0, last=2), flow(handle=1, credit=3, delivery_count=3, drain=True)],
        [Disposition(first=0, state=RELEASED), Disposition(first=1, settled=False)],
        [
            Disposition(
                first=0, last=2, state=Modified(delivery_failed=True, undeliverable_here=True)
            )
        ],
        [Detach(handle=1), attach_receiver("p", handle=1), flow(handle=1, credit=9)],
        [Detach(handle=1, closed=True), attach_receiver("t", handle=1, kind="topic")],
        [attach_sender(None, name="relay", handle=2), Transfer(handle=2, payload=message(to="p"))],
        [
            attach_receiver(
                source=Source(address=None, dynamic=True, expiry_policy="session-end"),
                handle=3,
                name="temporary",
            ),
            flow(handle=3, credit=1, delivery_count=0, echo=True),
        ],
        [
            attach_sender(target=Target(address=None, dynamic=True), handle=4, name="other"),
            attach_receiver("p", handle=5, name="second", rcv_settle_mode=1),
            flow(handle=5, credit=2, delivery_count=0),
            Disposition(first=3, settled=False, state=ACCEPTED),
        ],
        [End(), Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), flow(echo=True)],
        [flow(next_incoming_id=None, incoming_window=0), flow(handle=1, credit=0), Close()],
    ]


def sasl() -> list[bytes]:
    """Return complete and incomplete openings: with a password, without, and without SASL."""
    opening = AMQP_HEADER + frame(Open(container_id="c", idle_time_out=1000))
    logins = [
        SASL_HEADER + sasl_frame(init)
        for init in (
            SaslInit(mechanism=PLAIN, initial_response=RESPONSE),
            SaslInit(mechanism=PLAIN, initial_response=b"\0admin\0wrong", hostname="h"),
            SaslInit(mechanism=ANONYMOUS),
            SaslInit(mechanism="EXTERNAL", initial_response=b""),
        )
    ]
    begin = frame(Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9))
    layers = [each for each in GOLDEN if each[5] == SASL_FRAME]
    opens = [each for each in GOLDEN if each[10] == 0x10 and each[5] != SASL_FRAME]
    return [
        opening,
        opening + begin + frame(Close()),
        *logins,
        *(login + opening + begin for login in logins),
        *(SASL_HEADER + each + AMQP_HEADER for each in layers),
        *(AMQP_HEADER + each for each in opens),
        AMQP_HEADER[:5],
    ]
