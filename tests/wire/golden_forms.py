"""Frames made by hand after the specification: defaults, fillers, forms that few send.

Those that are not `ours` use encodings that are legal and not the shortest.
"""

from broker.amqp.outcomes import ACCEPTED, RELEASED
from broker.amqp.types import Symbol
from tests.wire.golden import form

FORMS = [
    # 2.7.1
    form(
        "open with a container-id alone",
        "005310 c004 01 a10163",
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
        "005310 c035 0a a10163 a10168 70 00010000 60 03ff 70 00007530"
        "e006 01 a3 03 656e41 e005 01 a3 02 6465 e004 01 a3 01 41 e006 02 a3 01 42 01 43"
        "c108 02 a3 01 6b a1 01 76",
        {
            "max_frame_size": 65536,
            "channel_max": 1023,
            "idle_time_out": 30000,
            "outgoing_locales": ["enA"],
            "incoming_locales": ["de"],
            "offered_capabilities": ["A"],
            "desired_capabilities": ["B", "C"],
            "properties": {"k": "v"},
        },
    ),
    form(
        "open with one symbol where many may be",
        "005310 c00e 08 a10163 40 40 40 40 40 40 a30141",
        {"container_id": "c", "offered_capabilities": ["A"]},
        ours=False,
    ),
    form(
        "open described by its symbol",
        "00 a30e 616d71703a6f70656e3a6c697374 c004 01 a10163",
        {"container_id": "c"},
        ours=False,
    ),
    form(
        "open described by a wide ulong, in a wide list, with wide strings",
        "0080 0000000000000010 d0 0000000c 00000002 b1 00000001 63 40 40"[:-3],
        {"container_id": "c", "hostname": None},
        ours=False,
    ),
    # 2.7.2
    form(
        "begin with what must be",
        "005311 c005 04 40 43 43 43",
        {
            "remote_channel": -1,
            "next_outgoing_id": 0,
            "incoming_window": 0,
            "outgoing_window": 0,
            "handle_max": 4294967295,
        },
    ),
    form(
        "begin that answers, with a limit",
        "005311 c014 05 60 0007 5201 70 00000800 70 00000800 52ff"[:-1] + "f",
        {
            "remote_channel": 7,
            "next_outgoing_id": 1,
            "incoming_window": 2048,
            "outgoing_window": 2048,
            "handle_max": 255,
        },
    ),
    # 2.7.3
    form(
        "attach with what must be",
        "005312 c006 03 a1016e 43 42",
        {
            "name": "n",
            "handle": 0,
            "role": False,
            "snd_settle_mode": 2,
            "rcv_settle_mode": 0,
            "source": None,
            "target": None,
            "has_unsettled": False,
            "incomplete_unsettled": False,
            "initial_delivery_count": -1,
            "max_message_size": 0,
            "fault": None,
        },
    ),
    form(
        "attach with a map of unsettled deliveries and the largest message there can be",
        "005312 c01f 0b a1016e 43 41 40 40 40 40 c109 02 a00107 00532445"
        "41 43 80 7fffffffffffffff",
        {
            "has_unsettled": True,
            "unsettled": bytes.fromhex("c10902a0010700532445"),
            "incomplete_unsettled": True,
            "initial_delivery_count": 0,
            "max_message_size": 2**63 - 1,
        },
    ),
    form(
        "attach with a size beyond what we can count",
        "005312 c016 0b a1016e 43 41 40 40 40 40 40 40 43 80 ffffffffffffffff",
        {"max_message_size": 2**63 - 1},
        ours=False,
    ),
    form(
        "attach whose address is no string: the link alone is refused",
        "005312 c011 07 a1016e 43 41 40 40 005328 c003 01 5501 40"[:-3],
        {"name": "n", "source": None, "fault": {"condition": "amqp:invalid-field"}},
        ours=False,
    ),
    # 2.7.4, the three of the architecture's 9.10
    form(
        "flow of a session",
        "005313 c007 04 43 5201 43 5202",
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
        },
    ),
    form(
        "flow with nulls in front of echo",
        "005313 c00d 0a 43 5201 43 5202 40 40 40 40 40 41",
        {"drain": False, "echo": True},
    ),
    form(
        "flow with credit",
        "005313 c00f 07 43 5201 43 5202 5203 43 70 0000012c",
        {"handle": 3, "delivery_count": 0, "link_credit": 300},
    ),
    form(
        "flow with the largest numbers",
        "005313 c01f 07 70 ffffffff 70 ffffffff 70 ffffffff 70 80000000 43 70 7fffffff 43"[:-3]
        + " 43",
        {
            "next_incoming_id": 4294967295,
            "incoming_window": 4294967295,
            "next_outgoing_id": 4294967295,
            "outgoing_window": 2147483648,
            "handle": 0,
            "delivery_count": 2147483647,
            "link_credit": 0,
        },
    ),
    # 2.7.5
    form("transfer of a continuation", "005314 c003 01 5203", {"handle": 3, "delivery_id": -1}),
    form(
        "transfer with every field",
        "005314 c01b 0b 43 5201 a00161 43 42 41 5001 00532545 41 41 41",
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
        "005314 d0 00000027 00000006 80 0000000000000003 70 00000001 b0 00000002 6162"
        "70 00000000 5600 5601",
        {"handle": 3, "delivery_id": 1, "tag": b"ab", "message_format": 0, "settled": 0, "more": True},
    ),
    form(
        "transfer of nulls behind the handle",
        "005314 c00c 0b 43 40 40 40 40 40 40 40 40 40 40",
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
    # 2.7.6
    form(
        "disposition of one delivery by its sender",
        "005315 c004 02 42 5205",
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
        "005315 c00d 05 41 5205 5209 41 00532445"[:9] + "b 05 41 5205 5209 41 00532445",
        {"role": True, "first": 5, "last": 9, "settled": True, "state": ACCEPTED},
    ),
    form(
        "disposition across the wrap, released, batchable",
        "005315 c00f 06 41 70 fffffffe 5201 41 00532645 41",
        {"first": 4294967294, "last": 1, "state": RELEASED, "batchable": True},
    ),
    form(
        "disposition that rejects and says why",
        "005315 c01f 05 41 43 40 41 005325 c013 01 00531d c00d 02 a307 616d71703a782d"
        "a10179"[:0],
        {},
    ),
]
