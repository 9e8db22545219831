"""Messages written by other implementations, and the values that routing reads from them.

Captured like the frames of `golden_frames.py` and `golden_client_frames.py`.
"""

from dataclasses import dataclass, field

from broker.amqp.descriptors import AMQP_SEQUENCE, AMQP_VALUE, DATA
from broker.amqp.types import Array, Byte, Char, Described, Float, Int, Map, Short, UInt, ULong
from tests.wire.golden import ARTEMIS, GO_AMQP, JMS, PROTON, PYAMQP, RHEA


@dataclass(frozen=True)
class GoldenMessage:
    """An encoded message; `body` is the descriptor code of its body, `value` the body's value."""

    name: str
    who: str
    hex: str
    body: int
    value: object = None
    durable: bool = False
    priority: int = 4
    ttl: int = -1
    absolute_expiry_time: int = -1
    to: str | None = None
    subject: str | None = None
    annotations: dict[str, object] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return bytes.fromhex(self.hex)


MESSAGES = [
    GoldenMessage(
        "text message with ttl and priority",
        JMS,
        "005370c00903415007700000ea60005372c13f06a312782d6f70742d6a6d732d7265706c792d746f5100a30e"
        "782d6f70742d6a6d732d646573745100a312782d6f70742d6a6d732d6d73672d747970655105005373d00000"
        "00670000000aa12f49443a30646533313333392d616266342d343431622d626231362d333166323462306261"
        "6463623a313a313a312d3140a1066f7264657273a1046b696e64a1077265706c696573a104636f7272404083"
        "000001a1fea27d5383000001a1fea192f3005374c11706a106636f6c6f7572a103726564a1016241a1016e54"
        "07005377a10568656c6c6f",
        durable=True,
        priority=7,
        ttl=60000,
        absolute_expiry_time=1795273424211,
        to="orders",
        subject="kind",
        body=AMQP_VALUE,
        value="hello",
        annotations={
            "x-opt-jms-dest": Byte(0),
            "x-opt-jms-msg-type": Byte(5),
            "x-opt-jms-reply-to": Byte(0),
        },
    ),
    GoldenMessage(
        "bytes message, not persistent: no header",
        JMS,
        "005372c12904a30e782d6f70742d6a6d732d646573745100a312782d6f70742d6a6d732d6d73672d74797065"
        "5103005373d0000000660000000aa12f49443a30646533313333392d616266342d343431622d626231362d33"
        "31663234623062616463623a313a313a312d3240a1066f7264657273404040a3186170706c69636174696f6e"
        "2f6f637465742d73747265616d404083000001a1fea1930d005375a003010203",
        durable=False,
        priority=4,
        ttl=-1,
        to="orders",
        body=DATA,
        value=b"\1\2\3",
        annotations={"x-opt-jms-dest": Byte(0), "x-opt-jms-msg-type": Byte(3)},
    ),
    GoldenMessage(
        "map message",
        JMS,
        "005370c0020141005372c12904a30e782d6f70742d6a6d732d646573745100a312782d6f70742d6a6d732d6d"
        "73672d747970655102005373d00000004d0000000aa12f49443a30646533313333392d616266342d34343162"
        "2d626231362d3331663234623062616463623a313a313a312d3340a1066f7264657273404040404040830000"
        "01a1fea1930f005377c12c0aa10173a10178a10163730000007aa10164823ff8000000000000a1017951ffa1"
        "016c810000010000000000",
        durable=True,
        to="orders",
        body=AMQP_VALUE,
        value=Map([("s", "x"), ("c", Char(122)), ("d", 1.5), ("y", Byte(-1)), ("l", 1 << 40)]),
        annotations={"x-opt-jms-dest": Byte(0), "x-opt-jms-msg-type": Byte(2)},
    ),
    GoldenMessage(
        "stream message",
        JMS,
        "005370c0020141005372c12904a30e782d6f70742d6a6d732d646573745100a312782d6f70742d6a6d732d6d"
        "73672d747970655104005373d00000004d0000000aa12f49443a30646533313333392d616266342d34343162"
        "2d626231362d3331663234623062616463623a313a313a312d3440a1066f7264657273404040404040830000"
        "01a1fea19341005376c01204710000012c61fffe723f000000a102c3a9",
        durable=True,
        to="orders",
        body=AMQP_SEQUENCE,
        value=[Int(300), Short(-2), Float(0.5), "é"],
        annotations={"x-opt-jms-dest": Byte(0), "x-opt-jms-msg-type": Byte(4)},
    ),
    GoldenMessage(
        "object message",
        JMS,
        "005370c0020141005372c12904a30e782d6f70742d6a6d732d646573745100a312782d6f70742d6a6d732d6d"
        "73672d747970655101005373d0000000720000000aa12f49443a30646533313333392d616266342d34343162"
        "2d626231362d3331663234623062616463623a313a313a312d3540a1066f7264657273404040a3246170706c"
        "69636174696f6e2f782d6a6176612d73657269616c697a65642d6f626a656374404083000001a1fea1934c00"
        "5375a00aaced00057400036f626a",
        durable=True,
        to="orders",
        body=DATA,
        value=bytes.fromhex("aced000574") + b"\0\3obj",
        annotations={"x-opt-jms-dest": Byte(0), "x-opt-jms-msg-type": Byte(1)},
    ),
    GoldenMessage(
        "message without a body",
        JMS,
        "005370c0020141005372c12904a30e782d6f70742d6a6d732d646573745100a312782d6f70742d6a6d732d6d"
        "73672d747970655100005373d00000004d0000000aa12f49443a30646533313333392d616266342d34343162"
        "2d626231362d3331663234623062616463623a313a313a312d3640a1066f7264657273404040404040830000"
        "01a1fea19350",
        durable=True,
        to="orders",
        body=-1,
        value=None,
        annotations={"x-opt-jms-dest": Byte(0), "x-opt-jms-msg-type": Byte(0)},
    ),
    GoldenMessage(
        "declare",
        JMS,
        "00537700533145",
        durable=False,
        to=None,
        body=AMQP_VALUE,
        value=Described(ULong(0x31), []),
        annotations={},
    ),
    GoldenMessage(
        "discharge",
        JMS,
        "005377005332c02802a02439623536393130342d653562632d313166312d386139612d303266633030303030"
        "30303142",
        body=AMQP_VALUE,
        value=Described(ULong(0x32), [b"9b569104-e5bc-11f1-8a9a-02fc00000001", False]),
        annotations={},
    ),
    GoldenMessage(
        "map message that comes again",
        ARTEMIS,
        "005370c00705414040405201005372c12904a30e782d6f70742d6a6d732d646573745100a312782d6f70742d"
        "6a6d732d6d73672d747970655102005373d00000004d0000000aa12f49443a30646533313333392d61626634"
        "2d343431622d626231362d3331663234623062616463623a313a313a312d3340a1066f726465727340404040"
        "404083000001a1fea1930f005377c12c0aa10173a10178a10163730000007aa10164823ff8000000000000a1"
        "017951ffa1016c810000010000000000",
        durable=True,
        priority=4,
        ttl=-1,
        to="orders",
        body=AMQP_VALUE,
        annotations={"x-opt-jms-dest": Byte(0), "x-opt-jms-msg-type": Byte(2)},
    ),
    GoldenMessage(
        "everything wide",
        PROTON,
        "005370c0090341500770000f4240005373c00c04a1026d3140a10171a10173005374d10000000f00000004a1"
        "01615501a10162a10178005377d10000001d00000002a1016bd0000000110000000455018240040000000000"
        "004041",
        durable=True,
        priority=7,
        ttl=1000000,
        to="q",
        subject="s",
        absolute_expiry_time=-1,
        body=AMQP_VALUE,
        value=Map([("k", [1, 2.5, None, True])]),
        annotations={},
    ),
    GoldenMessage(
        "header that is an empty list",
        PROTON,
        "00537045005373c006034040a10171005377a10568656c6c6f",
        durable=False,
        priority=4,
        ttl=-1,
        to="q",
        subject=None,
        body=AMQP_VALUE,
        value="hello",
        annotations={},
    ),
    GoldenMessage(
        "text, behind a header and properties that are empty",
        RHEA,
        "0053704500537345005377a10568656c6c6f",
        body=AMQP_VALUE,
        value="hello",
    ),
    GoldenMessage(
        "everything there is but a footer",
        RHEA,
        "005370d00000000c00000003415007700000ea60005371d10000001100000002a309782d6f70742d6f776e52"
        "01005372d10000001600000002a30e782d6f70742d6a6d732d646573745100005373d00000004e0000000da1"
        "0469642d31a0026d65a10171a1046b696e64a107616e73776572735307a30a746578742f706c61696ea30467"
        "7a697083000003bb2cc3d800830000018bcfe56800a101675203a10168005374d10000001d00000006a10474"
        "657874a10178a1066e756d6265725201a10379657341005375a00200ff",
        durable=True,
        priority=7,
        ttl=60000,
        absolute_expiry_time=4102444800000,
        to="q",
        subject="kind",
        body=DATA,
        value=b"\0\xff",
        annotations={"x-opt-jms-dest": Byte(0), "x-opt-own": None},
    ),
    GoldenMessage(
        "sequences in two sections",
        RHEA,
        "0053704500537345005376d00000000b000000025201a10374776f005376d0000000050000000140",
        body=AMQP_SEQUENCE,
    ),
    GoldenMessage(
        "map",
        RHEA,
        "0053704500537345005377d10000003200000008a1036f6e655201a10468616c66823fe0000000000000a102"
        "6e6f42a10464656570d00000000800000002520154ff",
        body=AMQP_VALUE,
        value=Map([("one", UInt(1)), ("half", 0.5), ("no", False), ("deep", [UInt(1), Int(-1)])]),
    ),
    GoldenMessage(
        "text, its section alone", GO_AMQP, "005377a10568656c6c6f", body=AMQP_VALUE, value="hello"
    ),
    GoldenMessage(
        "everything there is, data in two sections",
        GO_AMQP,
        "005370d00000000c00000003415007700000ea60005371d10000001100000002a309782d6f70742d6f776e55"
        "01005372d10000001600000002a30e782d6f70742d6a6d732d646573745100005373d0000000590000000d53"
        "09a0026d65a10171a1046b696e64a107616e73776572739807000000000000000000000000000000a30a7465"
        "78742f706c61696ea304677a697083000003bb2cc3d800830000018bcfe56800a101675203a10168005374d1"
        "0000000d00000002a10474657874a10178005375a00200ff005375a00374776f005378d10000000d00000002"
        "a305782d73756d550c",
        durable=True,
        priority=7,
        ttl=60000,
        absolute_expiry_time=4102444800000,
        to="q",
        subject="kind",
        body=DATA,
        annotations={"x-opt-jms-dest": Byte(0)},
    ),
    GoldenMessage(
        "sequences in two sections",
        GO_AMQP,
        "005376d00000000b000000025501a10374776f005376d00000000b00000001a1057468726565",
        body=AMQP_SEQUENCE,
    ),
    GoldenMessage(
        "array",
        GO_AMQP,
        "005377e004025401ff",
        body=AMQP_VALUE,
        value=Array(0x54, [Int(1), Int(-1)]),
    ),
    GoldenMessage(
        "binary, its section alone", PYAMQP, "005377a00568656c6c6f", body=AMQP_VALUE, value=b"hello"
    ),
    GoldenMessage(
        "everything there is, nulls to the last field, data in two sections",
        PYAMQP,
        "005370c00c0556015007700000ea604040005372c11302a30e782d6f70742d6a6d732d646573745100005373"
        "c05a0da10469642d31a0026d65a10171a1046b696e64a107616e737765727398000000000000000000000000"
        "00000007a30a746578742f706c61696ea304677a697083000003bb2cc3d800830000018bcfe56800a1016752"
        "03a10168005374c10a02a10474657874a00178005375a00200ff005375a00374776f005378c10a02a305782d"
        "73756d540c",
        durable=True,
        priority=7,
        ttl=60000,
        absolute_expiry_time=4102444800000,
        to="q",
        subject="kind",
        body=DATA,
        annotations={"x-opt-jms-dest": Byte(0)},
    ),
    GoldenMessage(
        "sequences in two sections",
        PYAMQP,
        "005376c008025401a00374776f005376c00801a0057468726565",
        body=AMQP_SEQUENCE,
    ),
    GoldenMessage(
        "map with binaries for keys",
        PYAMQP,
        "005377c11d06a0036f6e655401a00468616c66823fe0000000000000a0026e6f5600",
        body=AMQP_VALUE,
        value=Map([(b"one", Int(1)), (b"half", 0.5), (b"no", False)]),
    ),
]
