"""Transfers and dispositions written by further client libraries.

Captured by a relay between each client and this broker: rhea 3.0.5, go-amqp 1.6.0, pyamqp of
azure-servicebus 7.15.0, and the forms of Qpid Proton and Qpid JMS that `golden_frames.py` lacks. A
broker's answers decide what a client writes next, but not how it encodes it: our codec had no part
in that.
"""

from broker.amqp.outcomes import ACCEPTED, RELEASED
from broker.amqp.types import Int
from tests.wire.golden import GO_AMQP, JMS, PROTON, PYAMQP, RHEA, Golden

# two encodings of the map {x-opt-own: why}: with 32-bit sizes; with 8-bit sizes and a binary
WHY_WIDE = bytes.fromhex("d10000001400000002a309782d6f70742d6f776ea103776879")
WHY_BINARY = bytes.fromhex("c11102a309782d6f70742d6f776ea003776879")

CLIENT_DELIVERIES = [
    Golden(
        "transfer, its tag a number in digits",
        RHEA,
        "0000002e02000000005314d00000000c000000064343a001304342420053704500537345005377a10568656c"
        "6c6f",
        {
            "handle": 0,
            "delivery_id": 0,
            "tag": b"0",
            "message_format": 0,
            "settled": 0,
            "more": False,
        },
        payload=18,
    ),
    Golden(
        "transfer of what is left of a message, id and tag repeated",
        RHEA,
        "000000b802000000005314d00000000d00000006435204a00134434242787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878",
        {"handle": 0, "delivery_id": 4, "tag": b"4", "settled": 0, "more": False},
        payload=155,
    ),
    Golden(
        "transfer that is settled",
        RHEA,
        "0000003202000000005314d00000000e0000000652015205a001304341420053704500537345005377a10773"
        "6574746c6564",
        {"handle": 1, "delivery_id": 5, "tag": b"0", "settled": 1},
        payload=20,
    ),
    Golden(
        "transfer, its tag eight bytes",
        GO_AMQP,
        "0000002b02000000005314d000000011000000044343a008000000000000000043005377a10568656c6c6f",
        {
            "handle": 0,
            "delivery_id": 0,
            "tag": bytes(8),
            "message_format": 0,
            "settled": -1,
            "more": False,
        },
        payload=10,
    ),
    Golden(
        "transfer of the start of a message",
        GO_AMQP,
        "000001e202000000005314d00000001400000006435204a0080000000000000004434041005375b000000258"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "787878787878787878787878787878787878787878787878787878787878787878787878787878787878",
        {"delivery_id": 4, "tag": bytes(7) + b"\4", "settled": -1, "more": True},
        payload=446,
    ),
    Golden(
        "transfer of what is left of a message, its handle alone",
        GO_AMQP,
        "000000b702000000005314d00000000500000001437878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "78787878787878",
        {
            "handle": 0,
            "delivery_id": -1,
            "tag": None,
            "message_format": -1,
            "settled": -1,
            "more": False,
        },
        payload=162,
    ),
    Golden(
        "transfer that is settled",
        GO_AMQP,
        "0000003002000000005314d0000000140000000552015205a00800000000000000004341005377a107736574"
        "746c6564",
        {"handle": 1, "delivery_id": 5, "settled": 1},
        payload=12,
    ),
    Golden(
        "transfer, nulls to the last field",
        PYAMQP,
        "0000002b02000001005314c0140b520143a0040000000143560056004040404040005377a00568656c6c6f",
        {
            "handle": 1,
            "delivery_id": 0,
            "tag": b"\0\0\0\1",
            "message_format": 0,
            "settled": 0,
            "more": False,
            "rcv_settle_mode": -1,
            "state_at": -1,
            "resume": False,
            "aborted": False,
            "batchable": False,
        },
        payload=10,
    ),
    Golden(
        "transfer of what is left of a message",
        PYAMQP,
        "000000a402000001005314c0150b52015204a004000000054356005600404040404078787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878",
        {"delivery_id": 4, "tag": b"\0\0\0\5", "settled": 0, "more": False},
        payload=130,
    ),
    Golden(
        "transfer of what is left of a message",
        PROTON,
        "0000009202000000005314c007044343a0013143787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878",
        {
            "handle": 0,
            "delivery_id": 0,
            "tag": b"1",
            "message_format": 0,
            "settled": -1,
            "more": False,
        },
        payload=126,
    ),
    Golden(
        "disposition of two that are accepted",
        RHEA,
        "0000001d02000000005315d00000000d00000005414352014100532445",
        {"role": True, "first": 0, "last": 1, "settled": True, "state": ACCEPTED},
    ),
    Golden(
        "disposition that rejects",
        RHEA,
        "0000004602000000005315d00000003600000005415202520241005325d0000000240000000100531dd00000"
        "001800000002a3066170703a6e6fa10a6e6f742077616e746564",
        {
            "first": 2,
            "last": 2,
            "settled": True,
            "state": {"error": {"condition": "app:no", "description": "not wanted", "info": {}}},
        },
    ),
    Golden(
        "disposition that releases",
        RHEA,
        "0000001e02000000005315d00000000e0000000541520352034100532645",
        {"first": 3, "last": 3, "settled": True, "state": RELEASED},
    ),
    Golden(
        "disposition that modifies",
        RHEA,
        "0000004102000000005315d00000003100000005415204520441005327d00000001f000000034141d1000000"
        "1400000002a309782d6f70742d6f776ea103776879",
        {
            "first": 4,
            "settled": True,
            "state": {
                "delivery_failed": True,
                "undeliverable_here": True,
                "message_annotations": WHY_WIDE,
            },
        },
    ),
    Golden(
        "disposition that modifies as failed",
        RHEA,
        "0000002702000000005315d00000001700000005415205520541005327d0000000050000000141",
        {
            "first": 5,
            "state": {
                "delivery_failed": True,
                "undeliverable_here": False,
                "message_annotations": None,
            },
        },
    ),
    Golden(
        "disposition that accepts, without last",
        GO_AMQP,
        "0000001c02000000005315d00000000c000000054143404100532445",
        {"role": True, "first": 0, "last": 0, "settled": True, "state": ACCEPTED},
    ),
    Golden(
        "disposition that rejects, strings for keys of its info",
        GO_AMQP,
        "0000005302000000005315d000000043000000054152024041005325d0000000320000000100531dd0000000"
        "2600000003a3066170703a6e6fa10a6e6f742077616e746564d10000000900000002a101615501",
        {
            "first": 2,
            "state": {
                "error": {"condition": "app:no", "description": "not wanted", "info": {"a": 1}}
            },
        },
    ),
    Golden(
        "disposition that releases",
        GO_AMQP,
        "0000001d02000000005315d00000000d00000005415203404100532645",
        {"first": 3, "last": 3, "settled": True, "state": RELEASED},
    ),
    Golden(
        "disposition that modifies",
        GO_AMQP,
        "0000004002000000005315d000000030000000054152044041005327d00000001f000000034141d100000014"
        "00000002a309782d6f70742d6f776ea103776879",
        {
            "first": 4,
            "state": {
                "delivery_failed": True,
                "undeliverable_here": True,
                "message_annotations": WHY_WIDE,
            },
        },
    ),
    Golden(
        "disposition that modifies nothing",
        GO_AMQP,
        "0000001d02000000005315d00000000d00000005415205404100532745",
        {
            "first": 5,
            "state": {
                "delivery_failed": False,
                "undeliverable_here": False,
                "message_annotations": None,
            },
        },
    ),
    Golden(
        "disposition of two that are accepted, batchable",
        PYAMQP,
        "0000001b02000001005315c00e0656014352015601005324455601",
        {
            "role": True,
            "first": 0,
            "last": 1,
            "settled": True,
            "batchable": True,
            "state": ACCEPTED,
        },
    ),
    Golden(
        "disposition that rejects",
        PYAMQP,
        "0000003e02000001005315c0310656015202405601005325c0230100531dc01d03a3066170703a6e6fa10a6e"
        "6f742077616e746564c10602a30161540140",
        {
            "first": 2,
            "last": 2,
            "settled": True,
            "state": {
                "error": {"condition": "app:no", "description": "not wanted", "info": {"a": Int(1)}}
            },
        },
    ),
    Golden(
        "disposition that releases",
        PYAMQP,
        "0000001a02000001005315c00d06560152034056010053264540",
        {"first": 3, "last": 3, "settled": True, "batchable": False, "state": RELEASED},
    ),
    Golden(
        "disposition that modifies",
        PYAMQP,
        "0000003302000001005315c0260656015204405601005327c0180356015601c11102a309782d6f70742d6f77"
        "6ea00377687940",
        {
            "first": 4,
            "state": {
                "delivery_failed": True,
                "undeliverable_here": True,
                "message_annotations": WHY_BINARY,
            },
        },
    ),
    Golden(
        "disposition that rejects",
        PROTON,
        "0000004102000000005315c034054152024041005325c0290100531dc02303a3066170703a6e6fa10a6e6f74"
        "2077616e746564d10000000900000002a301615501",
        {
            "first": 2,
            "last": 2,
            "settled": True,
            "state": {
                "error": {"condition": "app:no", "description": "not wanted", "info": {"a": 1}}
            },
        },
    ),
    Golden(
        "disposition that modifies",
        PROTON,
        "0000003402000000005315c027054152044041005327c01c034141d10000001400000002a309782d6f70742d"
        "6f776ea103776879",
        {
            "first": 4,
            "state": {
                "delivery_failed": True,
                "undeliverable_here": True,
                "message_annotations": WHY_WIDE,
            },
        },
    ),
    Golden(
        "disposition that tells how much came",
        PROTON,
        "0000001d02000000005315c010054152054040005323c0050252025305",
        {"first": 5, "settled": False, "state": {"section_number": 2, "section_offset": 5}},
    ),
    Golden(
        "disposition that rejects without a reason",
        JMS,
        "0000001c02000001005315d00000000c000000054143434100532545",
        {"role": True, "first": 0, "last": 0, "settled": True, "state": {"error": None}},
    ),
    Golden(
        "disposition that modifies as failed",
        JMS,
        "0000001f02000001005315d00000000f0000000541434341005327c0020141",
        {
            "first": 0,
            "last": 0,
            "settled": True,
            "state": {"delivery_failed": True, "undeliverable_here": False},
        },
    ),
    Golden(
        "disposition that modifies as failed and undeliverable here",
        JMS,
        "0000002002000001005315d0000000100000000541434341005327c003024141",
        {
            "state": {
                "delivery_failed": True,
                "undeliverable_here": True,
                "message_annotations": None,
            }
        },
    ),
]
