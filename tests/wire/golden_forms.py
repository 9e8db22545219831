"""Frames made by hand from the specification: defaults, nulls, and forms that are rarely sent.

Frames that are not `ours` use legal encodings that are not the shortest.
"""

from broker.amqp.outcomes import ACCEPTED, RELEASED
from tests.wire.golden import composite, form, mapping, symbol

NULL = "40"
TRUE = "41"
FALSE = "42"
ZERO = "43"

CONNECTION_FORMS = [
    form(
        "open with a container-id alone",
        composite(0x10, "a10163"),
        {
            "container_id": "c",
            "hostname": None,
            "max_frame_size": 4294967295,
            "channel_max": 65535,
            "idle_time_out": -1,
            "outgoing_locales": [],
            "incoming_locales": [],
            "offered_capabilities": [],
            "desired_capabilities": [],
            "properties": {},
        },
    ),
    form(
        "open with every field",
        composite(
            0x10,
            "a10163",
            "a10168",
            "70 00010000",
            "60 03ff",
            "70 00007530",
            "e0 05 01 a3 02 656e",
            "e0 05 01 a3 02 6465",
            "e0 04 01 a3 01 41",
            "e0 06 02 a3 01 42 01 43",
            mapping(symbol("k"), "a1 01 76"),
        ),
        {
            "hostname": "h",
            "max_frame_size": 65536,
            "channel_max": 1023,
            "idle_time_out": 30000,
            "outgoing_locales": ["en"],
            "incoming_locales": ["de"],
            "offered_capabilities": ["A"],
            "desired_capabilities": ["B", "C"],
            "properties": {"k": "v"},
        },
    ),
    form(
        "open with one symbol where many may be",
        composite(0x10, "a10163", NULL, NULL, NULL, NULL, NULL, NULL, symbol("A")),
        {"offered_capabilities": ["A"]},
        ours=False,
    ),
    form(
        "open described by its symbol",
        "00 a30e 616d71703a6f70656e3a6c697374 c004 01 a10163",
        {"container_id": "c"},
        ours=False,
    ),
    form(
        "open described by a wide ulong, in a wide list, with a wide string",
        "00 80 0000000000000010 d0 0000000b 00000002 b1 00000001 63 40",
        {"container_id": "c", "hostname": None},
        ours=False,
    ),
    form("close", composite(0x18), {"error": None}),
    form(
        "close of a connection whose container-id is taken (CON-03)",
        composite(
            0x18,
            composite(
                0x1D,
                symbol("amqp:invalid-field"),
                NULL,
                mapping(symbol("invalid-field"), symbol("container-id")),
            ),
        ),
        {"error": {"condition": "amqp:invalid-field", "description": None}},
    ),
    form(
        "sasl-init with a hostname alone behind the mechanism",
        composite(0x41, symbol("PLAIN"), NULL, "a10168"),
        {"mechanism": "PLAIN", "initial_response": None, "hostname": "h"},
    ),
    form("sasl-challenge", composite(0x42, "a0 02 0102"), {"challenge": b"\1\2"}),
    form("sasl-response, empty", composite(0x43, "a0 00"), {"response": b""}),
    form(
        "sasl-outcome refused, with data",
        composite(0x44, "5001", "a0 01 07"),
        {"code": 1, "additional_data": b"\7"},
    ),
    form(
        "sasl-mechanisms of one that is no array",
        composite(0x40, symbol("PLAIN")),
        {"mechanisms": ["PLAIN"]},
        ours=False,
    ),
]

LINK_FORMS = [
    form(
        "begin with what must be",
        composite(0x11, NULL, ZERO, ZERO, ZERO),
        {
            "remote_channel": -1,
            "next_outgoing_id": 0,
            "incoming_window": 0,
            "outgoing_window": 0,
            "handle_max": 4294967295,
            "properties": {},
        },
    ),
    form(
        "begin that answers, with a limit",
        composite(0x11, "60 0007", "5201", "70 00000800", "70 00000800", "52ff"),
        {
            "remote_channel": 7,
            "next_outgoing_id": 1,
            "incoming_window": 2048,
            "outgoing_window": 2048,
            "handle_max": 255,
        },
    ),
    form("end", composite(0x17), {"error": None}),
    form(
        "end because of the window",
        composite(
            0x17,
            composite(
                0x1D,
                symbol("amqp:session:window-violation"),
                "a1 03 776879",
            ),
        ),
        {
            "error": {
                "condition": "amqp:session:window-violation",
                "description": "why",
                "info": {},
            }
        },
    ),
    form(
        "attach with what must be",
        composite(0x12, "a1016e", ZERO, FALSE),
        {
            "name": "n",
            "handle": 0,
            "role": False,
            "snd_settle_mode": 2,
            "rcv_settle_mode": 0,
            "source": None,
            "target": None,
            "unsettled": None,
            "has_unsettled": False,
            "incomplete_unsettled": False,
            "initial_delivery_count": -1,
            "max_message_size": 0,
            "offered_capabilities": [],
            "desired_capabilities": [],
            "properties": {},
            "fault": None,
        },
    ),
    form(
        "attach that comes back to unsettled deliveries",
        composite(
            0x12,
            "a1016e",
            ZERO,
            TRUE,
            NULL,
            NULL,
            NULL,
            NULL,
            mapping("a0 01 07", composite(0x24)),
            TRUE,
            ZERO,
            "80 7fffffffffffffff",
        ),
        {
            "has_unsettled": True,
            "unsettled": bytes.fromhex("c10802a0010700532445"),
            "incomplete_unsettled": True,
            "initial_delivery_count": 0,
            "max_message_size": 2**63 - 1,
        },
    ),
    form(
        "attach with a message size beyond what we can count",
        composite(
            0x12,
            "a1016e",
            ZERO,
            TRUE,
            NULL,
            NULL,
            NULL,
            NULL,
            NULL,
            NULL,
            ZERO,
            "80 ffffffffffffffff",
        ),
        {"max_message_size": 2**63 - 1},
        ours=False,
    ),
    form(
        "attach with every field of its source",
        composite(
            0x12,
            "a1016e",
            ZERO,
            TRUE,
            "5001",
            "5001",
            composite(
                0x28,
                "a10171",
                "5202",
                symbol("never"),
                "523c",
                TRUE,
                mapping(symbol("key"), composite(0x2B)),
                symbol("copy"),
                mapping(symbol("f"), "00 80 0000468c00000004 40"),
                composite(0x27, FALSE, TRUE),
                "e0 15 01" + symbol("amqp:accepted:list"),
                "e0 08 01" + symbol("queue"),
            ),
        ),
        {
            "snd_settle_mode": 1,
            "rcv_settle_mode": 1,
            "source": {
                "address": "q",
                "durable": 2,
                "expiry_policy": "never",
                "timeout": 60,
                "dynamic": True,
                "distribution_mode": "copy",
                "filter": [{"key": "f", "descriptor": 0x468C00000004, "value": None}],
                "default_outcome": {"delivery_failed": False, "undeliverable_here": True},
                "outcomes": ["amqp:accepted:list"],
                "capabilities": ["queue"],
            },
        },
    ),
    form(
        "attach whose address is no string: the link alone is to be refused",
        composite(0x12, "a1016e", ZERO, TRUE, NULL, NULL, composite(0x28, "5501")),
        {"name": "n", "source": None, "fault": {"condition": "amqp:invalid-field"}},
        ours=False,
    ),
    form(
        "attach whose target expires by a policy of its own: the same",
        composite(
            0x12, "a1016e", ZERO, FALSE, NULL, NULL, NULL, composite(0x29, NULL, NULL, symbol("x"))
        ),
        {"name": "n", "target": None, "fault": {"condition": "amqp:invalid-field"}},
        ours=False,
    ),
    form("detach", composite(0x16, ZERO), {"handle": 0, "closed": False, "error": None}),
    form(
        "detach of a stolen link",
        composite(0x16, "5203", TRUE, composite(0x1D, symbol("amqp:link:stolen"))),
        {
            "handle": 3,
            "closed": True,
            "error": {"condition": "amqp:link:stolen", "description": None, "info": {}},
        },
    ),
]

# the first three are those of the architecture's 9.10
FLOW_FORMS = [
    form(
        "flow of a session",
        composite(0x13, ZERO, "5201", ZERO, "5202"),
        {
            "next_incoming_id": 0,
            "incoming_window": 1,
            "next_outgoing_id": 0,
            "outgoing_window": 2,
            "handle": -1,
            "delivery_count": -1,
            "link_credit": -1,
            "available": -1,
            "drain": False,
            "echo": False,
            "properties": {},
        },
    ),
    form(
        "flow with nulls in front of echo",
        composite(0x13, ZERO, "5201", ZERO, "5202", NULL, NULL, NULL, NULL, NULL, TRUE),
        {"drain": False, "echo": True},
        ours=False,
    ),
    form(
        "flow with a false in front of echo",
        composite(0x13, ZERO, "5201", ZERO, "5202", NULL, NULL, NULL, NULL, FALSE, TRUE),
        {"drain": False, "echo": True},
    ),
    form(
        "flow with credit",
        composite(0x13, ZERO, "5201", ZERO, "5202", "5203", ZERO, "70 0000012c"),
        {"handle": 3, "delivery_count": 0, "link_credit": 300},
    ),
    form(
        "flow with the largest numbers",
        composite(
            0x13,
            "70 ffffffff",
            "70 ffffffff",
            "70 80000000",
            "70 7fffffff",
            "70 ffffffff",
            "70 ffffffff",
            "70 ffffffff",
        ),
        {
            "next_incoming_id": 4294967295,
            "incoming_window": 4294967295,
            "next_outgoing_id": 2147483648,
            "outgoing_window": 2147483647,
            "handle": 4294967295,
            "delivery_count": 4294967295,
            "link_credit": 4294967295,
        },
    ),
]

DELIVERY_FORMS = [
    form(
        "transfer of a continuation",
        composite(0x14, "5203"),
        {"handle": 3, "delivery_id": -1, "tag": None, "settled": -1, "more": False},
    ),
    form(
        "transfer with every field",
        composite(
            0x14,
            ZERO,
            "5201",
            "a00161",
            ZERO,
            FALSE,
            TRUE,
            "5001",
            composite(0x25),
            TRUE,
            TRUE,
            TRUE,
        ),
        {
            "handle": 0,
            "delivery_id": 1,
            "tag": b"a",
            "message_format": 0,
            "settled": 0,
            "more": True,
            "rcv_settle_mode": 1,
            "state": {"error": None},
            "resume": True,
            "aborted": True,
            "batchable": True,
        },
    ),
    form(
        "transfer in the widest forms",
        "005314 d0 0000001e 00000006 70 00000003 70 ffffffff b0 00000002 616270 00000000 5600 5601",
        {
            "handle": 3,
            "delivery_id": 4294967295,
            "tag": b"ab",
            "message_format": 0,
            "settled": 0,
            "more": True,
        },
    ),
    form(
        "transfer of nulls behind the handle",
        composite(0x14, ZERO, *[NULL] * 10),
        {
            "handle": 0,
            "delivery_id": -1,
            "tag": None,
            "message_format": -1,
            "settled": -1,
            "more": False,
            "rcv_settle_mode": -1,
            "state_at": -1,
            "resume": False,
            "aborted": False,
            "batchable": False,
        },
    ),
    form(
        "disposition of one delivery by its sender",
        composite(0x15, FALSE, "5205"),
        {
            "role": False,
            "first": 5,
            "last": 5,
            "settled": False,
            "state_at": -1,
            "state_code": -1,
            "batchable": False,
        },
    ),
    form(
        "disposition of a range, accepted",
        composite(0x15, TRUE, "5205", "5209", TRUE, composite(0x24)),
        {"role": True, "first": 5, "last": 9, "settled": True, "state": ACCEPTED},
    ),
    form(
        "disposition across the wrap, released",
        composite(0x15, TRUE, "70 fffffffe", "5201", TRUE, composite(0x26)),
        {"first": 4294967294, "last": 1, "state": RELEASED},
    ),
    form(
        "disposition that is batchable",
        composite(0x15, TRUE, ZERO, NULL, NULL, NULL, TRUE),
        {"first": 0, "last": 0, "settled": False, "batchable": True},
        ours=False,
    ),
    form(
        "disposition that rejects and says why",
        composite(
            0x15,
            TRUE,
            ZERO,
            NULL,
            TRUE,
            composite(0x25, composite(0x1D, symbol("amqp:not-found"), "a10178")),
        ),
        {"state": {"error": {"condition": "amqp:not-found", "description": "x"}}},
    ),
    form(
        "disposition that modifies, with annotations",
        composite(
            0x15,
            TRUE,
            ZERO,
            NULL,
            TRUE,
            composite(0x27, TRUE, TRUE, mapping(symbol("k"), "51 01")),
        ),
        {
            "state_code": 0x27,
            "state": {
                "delivery_failed": True,
                "undeliverable_here": True,
                "message_annotations": bytes.fromhex("c10602a3016b5101"),
            },
        },
    ),
    form(
        "disposition that tells how far a delivery has come",
        composite(0x15, TRUE, ZERO, NULL, FALSE, composite(0x23, "5201", "53ff")),
        {"state": {"section_number": 1, "section_offset": 255}},
    ),
    form(
        "disposition with a state that nobody here knows",
        composite(0x15, TRUE, ZERO, NULL, NULL, "00 a3 01 78 45"),
        {"state_code": -1},
        ours=False,
    ),
]

FORMS = [*CONNECTION_FORMS, *LINK_FORMS, *FLOW_FORMS, *DELIVERY_FORMS]
