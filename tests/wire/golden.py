"""The golden frame: bytes that another implementation wrote, and their meaning."""

from dataclasses import dataclass

JMS = "Qpid JMS 2.10.0"
ARTEMIS = "Artemis 2.40.0"
PROTON = "Qpid Proton 0.40.0"
RHEA = "rhea 3.0.5"
GO_AMQP = "go-amqp 1.6.0"
PYAMQP = "pyamqp of azure-servicebus 7.15.0"
SPECIFICATION = "the specification"


@dataclass(frozen=True)
class Golden:
    """A complete frame.

    `meaning` maps attribute names of the decoded frame to their values, nested as they are.
    `payload` is the number of bytes after the performative.
    """

    name: str
    who: str
    hex: str
    meaning: dict[str, object]
    payload: int = 0
    # whether our encoder writes this frame with exactly these bytes
    ours: bool = False

    @property
    def frame(self) -> bytes:
        return bytes.fromhex(self.hex)


def composite(code: int, *fields: str) -> str:
    """Return a described list in the 8-bit form, in hex, with sizes not counted by our codec."""
    content = bytes.fromhex("".join(fields))
    if not fields:
        return f"0053{code:02x}45"
    return f"0053{code:02x}c0{len(content) + 1:02x}{len(fields):02x}{content.hex()}"


def mapping(*items: str) -> str:
    """Return a map in the 8-bit form, in hex; keys and values alternate."""
    content = bytes.fromhex("".join(items))
    return f"c1{len(content) + 1:02x}{len(items):02x}{content.hex()}"


def symbol(text: str) -> str:
    """Return a symbol in the 8-bit form, in hex."""
    return f"a3{len(text):02x}{text.encode().hex()}"


def form(name: str, body: str, meaning: dict[str, object], *, ours: bool = True) -> Golden:
    """Return a frame with this body, made by hand from the specification's text."""
    raw = bytes.fromhex(body)
    frame = (len(raw) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + raw
    return Golden(name, SPECIFICATION, frame.hex(), meaning, ours=ours)
