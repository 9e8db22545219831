"""What a golden frame is: bytes that somebody wrote, and what they mean."""

from dataclasses import dataclass

JMS = "Qpid JMS 2.10.0"
ARTEMIS = "Artemis 2.40.0"
PROTON = "Qpid Proton 0.40.0"
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


def form(name: str, body: str, meaning: dict[str, object], *, ours: bool = True) -> Golden:
    """A frame made by hand after the specification's text, of which `body` is the body."""
    raw = bytes.fromhex(body)
    frame = (len(raw) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + raw
    return Golden(name, SPECIFICATION, frame.hex(), meaning, ours=ours)
