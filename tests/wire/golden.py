"""What a golden frame is: bytes that somebody wrote, and what they mean."""

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
    """A whole frame.

    `meaning` names attributes of what is read from it, nested where they are nested.
    `payload` counts the bytes behind the performative.
    """

    name: str
    who: str
    hex: str
    meaning: dict[str, object]
    payload: int = 0
    # whether we write this frame with these very bytes
    ours: bool = False

    @property
    def frame(self) -> bytes:
        return bytes.fromhex(self.hex)


def composite(code: int, *fields: str) -> str:
    """A described list in the narrow form, in hex: sizes counted here, not by our codec."""
    content = bytes.fromhex("".join(fields))
    if not fields:
        return f"0053{code:02x}45"
    return f"0053{code:02x}c0{len(content) + 1:02x}{len(fields):02x}{content.hex()}"


def mapping(*items: str) -> str:
    """A map in the narrow form, in hex: keys and values in turn."""
    content = bytes.fromhex("".join(items))
    return f"c1{len(content) + 1:02x}{len(items):02x}{content.hex()}"


def symbol(text: str) -> str:
    """A symbol in the narrow form, in hex."""
    return f"a3{len(text):02x}{text.encode().hex()}"


def form(name: str, body: str, meaning: dict[str, object], *, ours: bool = True) -> Golden:
    """A frame made by hand after the specification's text, of which `body` is the body."""
    raw = bytes.fromhex(body)
    frame = (len(raw) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + raw
    return Golden(name, SPECIFICATION, frame.hex(), meaning, ours=ours)
