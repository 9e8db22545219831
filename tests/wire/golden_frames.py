"""Frames of every kind but attach, written by other implementations.

Captured from Qpid JMS 2.10.0 talking to Artemis 2.40.0, and from Qpid Proton 0.40.0 talking to
itself, so our codec had no part in them.
"""

from broker.amqp.outcomes import ACCEPTED
from tests.wire.golden import ARTEMIS, JMS, PROTON, Golden

FRAMES = [
    Golden(
        "sasl-init, PLAIN",
        JMS,
        "0000002e02010000005341c02103a305504c41494ea00c0061646d696e0061646d696ea1093132372e302e30"
        "2e31",
        {"mechanism": "PLAIN", "initial_response": b"\0admin\0admin", "hostname": "127.0.0.1"},
    ),
    Golden(
        "sasl-mechanisms of two",
        ARTEMIS,
        "0000002202010000005340c01501e01202a305504c41494e09414e4f4e594d4f5553",
        {"mechanisms": ["PLAIN", "ANONYMOUS"]},
    ),
    Golden(
        "sasl-outcome ok",
        ARTEMIS,
        "0000001002010000005344c003015000",
        {"code": 0, "additional_data": None},
    ),
    Golden(
        "open",
        JMS,
        "0000010602000000005310c0f90aa108636c69656e742d31a1093132372e302e302e317000100000607fff70"
        "00007530404040e04d04a31d736f6c652d636f6e6e656374696f6e2d666f722d636f6e7461696e6572104445"
        "4c415945445f44454c49564552590f414e4f4e594d4f55532d52454c41590b5348415245442d53554253c182"
        "06a30770726f64756374a107517069644a4d53a30776657273696f6ea106322e31302e30a308706c6174666f"
        "726da1524a564d3a2031372e302e31352c2031372e302e31352b362d44656269616e2d31646562313275312c"
        "2044656269616e2c204f533a204c696e75782c20362e31382e34342d66632d763636392c20616d643634",
        {
            "container_id": "client-1",
            "hostname": "127.0.0.1",
            "max_frame_size": 1048576,
            "channel_max": 32767,
            "idle_time_out": 30000,
            "offered_capabilities": [],
            "desired_capabilities": [
                "sole-connection-for-container",
                "DELAYED_DELIVERY",
                "ANONYMOUS-RELAY",
                "SHARED-SUBS",
            ],
            "properties": {
                "product": "QpidJMS",
                "version": "2.10.0",
                "platform": "JVM: 17.0.15, 17.0.15+6-Debian-1deb12u1, Debian, OS: Linux, "
                "6.18.44-fc-v669, amd64",
            },
        },
    ),
    Golden(
        "open of a server",
        ARTEMIS,
        "000000ca02000000005310c0bd0aa12430393765303463652d653562392d313166312d386139612d30326663"
        "303030303030303140700002000060ffff70000075304040e04d04a31d736f6c652d636f6e6e656374696f6e"
        "2d666f722d636f6e7461696e65721044454c415945445f44454c49564552590b5348415245442d535542530f"
        "414e4f4e594d4f55532d52454c415940c13404a30770726f64756374a1176170616368652d6163746976656d"
        "712d617274656d6973a30776657273696f6ea106322e34302e30",
        {
            "max_frame_size": 131072,
            "channel_max": 65535,
            "hostname": None,
            "offered_capabilities": [
                "sole-connection-for-container",
                "DELAYED_DELIVERY",
                "SHARED-SUBS",
                "ANONYMOUS-RELAY",
            ],
        },
    ),
    Golden(
        "begin of the first JMS session",
        JMS,
        "0000002002000001005311c0130540520170000007ff707fffffff700000ffff",
        {
            "remote_channel": -1,
            "next_outgoing_id": 1,
            "incoming_window": 2047,
            "outgoing_window": 2147483647,
            "handle_max": 65535,
        },
    ),
    Golden(
        "begin that answers",
        ARTEMIS,
        "0000002202000001005311c015056000015201707fffffff707fffffff700000ffff",
        {
            "remote_channel": 1,
            "next_outgoing_id": 1,
            "incoming_window": 2147483647,
            "handle_max": 65535,
        },
    ),
    Golden(
        "flow with the first credit",
        JMS,
        "0000002102000001005313c01407520170000007ff5207707fffffff520143520a",
        {
            "next_incoming_id": 1,
            "incoming_window": 2047,
            "next_outgoing_id": 7,
            "outgoing_window": 2147483647,
            "handle": 1,
            "delivery_count": 0,
            "link_credit": 10,
            "available": -1,
            "drain": False,
            "echo": False,
        },
    ),
    Golden(
        "flow that drains",
        JMS,
        "0000002302000001005313c01609520170000007ff5207707fffffff520143520a4041",
        {"delivery_count": 0, "link_credit": 10, "available": -1, "drain": True},
    ),
    Golden(
        "flow that answers a drain",
        ARTEMIS,
        "0000002302000001005313c016095207707fffffff5202707fffffff5201520a434041",
        {"handle": 1, "delivery_count": 10, "link_credit": 0, "drain": True},
    ),
    Golden(
        "transfer of a persistent text message",
        JMS,
        "000000fc02000001005314c008054343a001004342005370c00903415007700000ea60005372c13f06a31278"
        "2d6f70742d6a6d732d7265706c792d746f5100a30e782d6f70742d6a6d732d646573745100a312782d6f7074"
        "2d6a6d732d6d73672d747970655105005373d0000000670000000aa12f49443a30646533313333392d616266"
        "342d343431622d626231362d3331663234623062616463623a313a313a312d3140a1066f7264657273a1046b"
        "696e64a1077265706c696573a104636f7272404083000001a1fea27d5383000001a1fea192f3005374c11706"
        "a106636f6c6f7572a103726564a1016241a1016e5407005377a10568656c6c6f",
        {
            "handle": 0,
            "delivery_id": 0,
            "tag": b"\0",
            "message_format": 0,
            "settled": 0,
            "more": False,
            "rcv_settle_mode": -1,
            "state_at": -1,
            "aborted": False,
        },
        payload=231,
    ),
    Golden(
        "transfer that is settled, its tag empty",
        ARTEMIS,
        "000000fc02000001005314c00805520143a0004341005370c00903415007700000ea60005372c13f06a31278"
        "2d6f70742d6a6d732d7265706c792d746f5100a30e782d6f70742d6a6d732d646573745100a312782d6f7074"
        "2d6a6d732d6d73672d747970655105005373d0000000670000000aa12f49443a30646533313333392d616266"
        "342d343431622d626231362d3331663234623062616463623a313a313a312d3140a1066f7264657273a1046b"
        "696e64a1077265706c696573a104636f7272404083000001a1fea27d5383000001a1fea192f3005374c11706"
        "a106636f6c6f7572a103726564a1016241a1016e5407005377a10568656c6c6f",
        {"handle": 1, "delivery_id": 0, "tag": b"", "settled": 1, "more": False},
        payload=231,
    ),
    Golden(
        "transfer in a transaction",
        JMS,
        "000000df02000002005314d00000003b0000000852015201a0010043424240005334c02701a0243962353639"
        "3130342d653562632d313166312d386139612d303266633030303030303031005370c0020141005372c12904"
        "a30e782d6f70742d6a6d732d646573745100a312782d6f70742d6a6d732d6d73672d747970655105005373d0"
        "0000004d0000000aa12f49443a30646533313333392d616266342d343431622d626231362d33316632346230"
        "62616463623a313a323a312d3140a1066f726465727340404040404083000001a1fea19544005377a105696e"
        "207478",
        {
            "handle": 1,
            "delivery_id": 1,
            "tag": b"\0",
            "settled": 0,
            "more": False,
            "state": {"txn_id": b"9b569104-e5bc-11f1-8a9a-02fc00000001", "outcome": None},
        },
        payload=148,
    ),
    Golden(
        "transfer of a declare",
        JMS,
        "0000001c02000002005314c008054343a00100434200537700533145",
        {"handle": 0, "delivery_id": 0, "settled": 0},
        payload=7,
    ),
    Golden(
        "disposition that accepts",
        JMS,
        "0000001802000001005315c00b0541520152014100532445",
        {
            "role": True,
            "first": 1,
            "last": 1,
            "settled": True,
            "state_code": 0x24,
            "batchable": False,
        },
    ),
    Golden(
        "disposition that releases",
        JMS,
        "0000001802000001005315c00b0541520352034100532645",
        {"first": 3, "last": 3, "state_code": 0x26},
    ),
    Golden(
        "disposition that accepts in a transaction",
        JMS,
        "0000004802000002005315d0000000380000000541434341005334c02b02a02439623539303230352d653562"
        "632d313166312d386139612d30326663303030303030303100532445",
        {
            "first": 0,
            "last": 0,
            "settled": True,
            "state_code": 0x34,
            "state": {"txn_id": b"9b590205-e5bc-11f1-8a9a-02fc00000001", "outcome": ACCEPTED},
        },
    ),
    Golden(
        "disposition that declares",
        ARTEMIS,
        "0000004402000002005315d0000000340000000541434341005333c02701a02439623536393130342d653562"
        "632d313166312d386139612d303266633030303030303031",
        {"state_code": 0x33, "state": {"txn_id": b"9b569104-e5bc-11f1-8a9a-02fc00000001"}},
    ),
    Golden(
        "detach for good",
        JMS,
        "0000001102000001005316c00402520141",
        {"handle": 1, "closed": True, "error": None},
    ),
    Golden(
        "detach for now",
        JMS,
        "0000001002000001005316c003015203",
        {"handle": 3, "closed": False, "error": None},
    ),
    Golden(
        "end",
        JMS,
        "0000000c0200000200531745",
        {"error": None},
    ),
    Golden(
        "close",
        JMS,
        "0000000c0200000000531845",
        {"error": None},
    ),
    Golden(
        "sasl-init, ANONYMOUS",
        PROTON,
        "0000002402010000005341c01702a309414e4f4e594d4f5553a009616e6f6e796d6f7573",
        {"mechanism": "ANONYMOUS", "initial_response": b"anonymous", "hostname": None},
    ),
    Golden(
        "open with arrays of the wide form",
        PROTON,
        "0000007802000000005310c06b0aa12466393566323062332d376434342d343137332d396339382d34643562"
        "3030616239626265a1093132372e302e302e317000008000607fff7000001388404040f00000000f00000002"
        "b300000001410000000142d10000001000000002a30770726f64756374a10174",
        {
            "container_id": "f95f20b3-7d44-4173-9c98-4d5b00ab9bbe",
            "max_frame_size": 32768,
            "idle_time_out": 5000,
            "desired_capabilities": ["A", "B"],
            "properties": {"product": "t"},
        },
    ),
    Golden(
        "open of a server without a name",
        PROTON,
        "0000003902000000005310c02c08a100407000008000607fff404040f00000001800000001b30000000f414e"
        "4f4e594d4f55532d52454c4159",
        {
            "container_id": "",
            "hostname": None,
            "idle_time_out": -1,
            "offered_capabilities": ["ANONYMOUS-RELAY"],
        },
    ),
    Golden(
        "begin",
        PROTON,
        "0000001f02000000005311c012054043707fffffff707fffffff707fffffff",
        {
            "remote_channel": -1,
            "next_outgoing_id": 0,
            "incoming_window": 2147483647,
            "handle_max": 2147483647,
        },
    ),
    Golden(
        "begin that answers",
        PROTON,
        "0000002102000000005311c0140560000043707fffffff707fffffff707fffffff",
        {"remote_channel": 0, "next_outgoing_id": 0},
    ),
    Golden(
        "flow before any begin came",
        PROTON,
        "0000002102000000005313c0140940707fffffff43707fffffff52014352054042",
        {
            "next_incoming_id": -1,
            "incoming_window": 2147483647,
            "handle": 1,
            "delivery_count": 0,
            "link_credit": 5,
            "drain": False,
        },
    ),
    Golden(
        "transfer that says nothing of settled",
        PROTON,
        "0000002d02000000005314c007044343a001314300537045005373c006034040a10171005377a10568656c6c"
        "6f",
        {
            "handle": 0,
            "delivery_id": 0,
            "tag": b"1",
            "message_format": 0,
            "settled": -1,
            "more": False,
        },
        payload=25,
    ),
    Golden(
        "disposition without last",
        PROTON,
        "0000001602000000005315c009054143404100532445",
        {"role": True, "first": 0, "last": 0, "settled": True, "state_code": 0x24},
    ),
]
