"""Frames of further client libraries, except attaches and deliveries.

Captured by a relay between each client and this broker: rhea 3.0.5, go-amqp 1.6.0, pyamqp of
azure-servicebus 7.15.0, and the forms of Qpid Proton and Qpid JMS that `golden_frames.py` lacks. A
broker's answers decide what a client writes next, but not how it encodes it: our codec had no part
in that.
"""

from tests.wire.golden import GO_AMQP, PROTON, PYAMQP, RHEA, Golden

CLIENT_FRAMES = [
    Golden(
        "sasl-init, ANONYMOUS, the fields in the wide form",
        RHEA,
        "0000003602010000005341d00000002600000003a309414e4f4e594d4f5553a00a00616e6f6e796d6f7573a1"
        "093132372e302e302e31",
        {"mechanism": "ANONYMOUS", "initial_response": b"\0anonymous", "hostname": "127.0.0.1"},
    ),
    Golden(
        "sasl-init, ANONYMOUS, for nobody's host",
        GO_AMQP,
        "0000002a02010000005341d00000001a00000002a309414e4f4e594d4f5553a009616e6f6e796d6f7573",
        {"mechanism": "ANONYMOUS", "initial_response": b"anonymous", "hostname": None},
    ),
    Golden(
        "sasl-init, ANONYMOUS, an empty response",
        PYAMQP,
        "0000002602010000005341c01903a309414e4f4e594d4f5553a000a1093132372e302e302e31",
        {"mechanism": "ANONYMOUS", "initial_response": b"", "hostname": "127.0.0.1"},
    ),
    Golden(
        "open without a hostname",
        RHEA,
        "0000006202000000005310d0000000520000000aa106726865612d3140700000100060000a70000075304040"
        "40f00000001500000001a30f414e4f4e594d4f55532d52454c4159d10000001600000002a30770726f647563"
        "74a10763617074757265",
        {
            "container_id": "rhea-1",
            "hostname": None,
            "max_frame_size": 4096,
            "channel_max": 10,
            "idle_time_out": 30000,
            "offered_capabilities": [],
            "desired_capabilities": ["ANONYMOUS-RELAY"],
            "properties": {"product": "capture"},
        },
    ),
    Golden(
        "open with half the idle time-out",
        GO_AMQP,
        "0000005102000000005310d0000000410000000aa104676f2d31a1093132372e302e302e3170000010006000"
        "0b7000003a9840404040d10000001600000002a30770726f64756374a10763617074757265",
        {
            "container_id": "go-1",
            "hostname": "127.0.0.1",
            "max_frame_size": 4096,
            "channel_max": 11,
            "idle_time_out": 15000,
            "desired_capabilities": [],
            "properties": {"product": "capture"},
        },
    ),
    Golden(
        "open, a binary among its properties",
        PYAMQP,
        "0000004502000000005310c0380aa10470792d31a1093132372e302e302e31700000100060000a7000007530"
        "40404040c11302a30770726f64756374a00763617074757265",
        {
            "container_id": "py-1",
            "max_frame_size": 4096,
            "channel_max": 10,
            "idle_time_out": 30000,
            "outgoing_locales": [],
            "desired_capabilities": [],
            "properties": {"product": b"capture"},
        },
    ),
    Golden(
        "open, nulls to the last field",
        PYAMQP,
        "0000002d02000000005310c0200aa10470792d32a1093132372e302e302e31700010000060ffff4040404040"
        "40",
        {
            "container_id": "py-2",
            "max_frame_size": 1048576,
            "channel_max": 65535,
            "idle_time_out": -1,
            "properties": {},
        },
    ),
    Golden(
        "begin with the window of its buffer",
        RHEA,
        "0000002002000000005311d000000010000000044043700000080070ffffffff",
        {
            "remote_channel": -1,
            "next_outgoing_id": 0,
            "incoming_window": 2048,
            "outgoing_window": 4294967295,
            "handle_max": 4294967295,
        },
    ),
    Golden(
        "begin with a limit of links",
        GO_AMQP,
        "0000002202000000005311d000000012000000054043700000138870000013885263",
        {"remote_channel": -1, "incoming_window": 5000, "outgoing_window": 5000, "handle_max": 99},
    ),
    Golden(
        "begin, nulls to the last field",
        PYAMQP,
        "0000002202000001005311c0150840437000010000700001000070ffffffff404040",
        {
            "remote_channel": -1,
            "incoming_window": 65536,
            "outgoing_window": 65536,
            "handle_max": 4294967295,
            "properties": {},
        },
    ),
    Golden(
        "flow with the first credit",
        RHEA,
        "0000002602000000005313d00000001600000007437000000800520770fffffff85204435206",
        {
            "next_incoming_id": 0,
            "incoming_window": 2048,
            "next_outgoing_id": 7,
            "outgoing_window": 4294967288,
            "handle": 4,
            "delivery_count": 0,
            "link_credit": 6,
            "drain": False,
        },
    ),
    Golden(
        "flow that drains",
        RHEA,
        "0000002a02000000005313d00000001a0000000952067000000800520770fffffff852045206520a4041",
        {
            "next_incoming_id": 6,
            "handle": 4,
            "delivery_count": 6,
            "link_credit": 10,
            "drain": True,
            "echo": False,
        },
    ),
    Golden(
        "flow with the first credit",
        GO_AMQP,
        "0000002602000000005313d00000001600000007437000001388520770000013885204435206",
        {
            "next_incoming_id": 0,
            "incoming_window": 5000,
            "handle": 4,
            "delivery_count": 0,
            "link_credit": 6,
            "drain": False,
        },
    ),
    Golden(
        "flow with more credit",
        GO_AMQP,
        "0000002802000000005313d00000001800000007520670000013885207700000138852045206520a",
        {"next_incoming_id": 6, "delivery_count": 6, "link_credit": 10, "drain": False},
    ),
    Golden(
        "flow that drains, and takes the credit back",
        GO_AMQP,
        "0000002902000000005313d00000001900000009520b7000001388520770000013885204520b434041",
        {"delivery_count": 11, "link_credit": 0, "available": -1, "drain": True},
    ),
    Golden(
        "flow of a sender, which has no say in the credit",
        PYAMQP,
        "0000002602000001005313c0190b437000010000437000010000520143700000271040404040",
        {
            "next_incoming_id": 0,
            "handle": 1,
            "delivery_count": 0,
            "link_credit": 10000,
            "drain": False,
            "echo": False,
        },
    ),
    Golden(
        "flow of a receiver that wants nothing yet",
        PYAMQP,
        "0000002202000001005313c0150b4370000100004370000100005201434340404040",
        {"handle": 1, "delivery_count": 0, "link_credit": 0, "drain": False},
    ),
    Golden(
        "flow that drains",
        PYAMQP,
        "0000002602000001005313c0190b5205700000fffb43700001000052015205520a4056014040",
        {
            "next_incoming_id": 5,
            "incoming_window": 65531,
            "delivery_count": 5,
            "link_credit": 10,
            "available": -1,
            "drain": True,
            "echo": False,
            "properties": {},
        },
    ),
    Golden(
        "flow that drains",
        PROTON,
        "0000002402000000005313c017095206707fffffff5207707fffffff52015206520a4041",
        {"delivery_count": 6, "link_credit": 10, "drain": True},
    ),
    Golden(
        "detach for now, closed left out",
        RHEA,
        "0000001702000000005316d00000000700000002520442",
        {"handle": 4, "closed": False, "error": None},
    ),
    Golden(
        "detach with an error",
        RHEA,
        "0000003402000000005316d00000002400000003434100531dd00000001600000002a3086170703a646f6e65"
        "a106656e6f756768",
        {"handle": 0, "closed": True, "error": {"condition": "app:done", "description": "enough"}},
    ),
    Golden(
        "detach for good",
        GO_AMQP,
        "0000001702000000005316d00000000700000002520441",
        {"handle": 4, "closed": True, "error": None},
    ),
    Golden(
        "detach for good, booleans of two bytes",
        PYAMQP,
        "0000001302000001005316c006035201560140",
        {"handle": 1, "closed": True, "error": None},
    ),
    Golden(
        "detach for now",
        PROTON,
        "0000001002000000005316c003015203",
        {"handle": 3, "closed": False, "error": None},
    ),
    Golden(
        "detach with an error",
        PROTON,
        "0000002802000000005316c01b03434100531dc01302a3086170703a646f6e65a106656e6f756768",
        {
            "handle": 0,
            "closed": True,
            "error": {"condition": "app:done", "description": "enough", "info": {}},
        },
    ),
    Golden(
        "end, its one field null",
        PYAMQP,
        "0000000f02000001005317c0020140",
        {"error": None},
    ),
    Golden(
        "end with an error",
        PROTON,
        "0000001e02000000005317c0110100531dc00b01a3086170703a646f6e65",
        {"error": {"condition": "app:done", "description": None}},
    ),
    Golden(
        "close, its one field null",
        PYAMQP,
        "0000000f02000000005318c0020140",
        {"error": None},
    ),
    Golden(
        "close with an error",
        PROTON,
        "0000002e02000000005318c0210100531dc01b03a3086170703a646f6e6540d10000000a00000002a30161a1"
        "0162",
        {"error": {"condition": "app:done", "description": None, "info": {"a": "b"}}},
    ),
]
