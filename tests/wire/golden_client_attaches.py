"""Attach frames written by further client libraries.

Captured by a relay between each client and this broker: rhea 3.0.5, go-amqp 1.6.0, pyamqp of
azure-servicebus 7.15.0, and the forms of Qpid Proton and Qpid JMS that `golden_attaches.py` lacks.
A broker's answers decide what a client writes next, but not how it encodes it: our codec had no
part in that.
"""

from broker.amqp.types import Described, ULong
from tests.wire.golden import GO_AMQP, PROTON, PYAMQP, RHEA, Golden

CLIENT_ATTACHES = [
    Golden(
        "attach of a sender",
        RHEA,
        "0000003202000000005312d0000000220000000aa10273314342404000532845005329d00000000700000001"
        "a10171404043",
        {
            "name": "s1",
            "handle": 0,
            "role": False,
            "snd_settle_mode": 2,
            "rcv_settle_mode": 0,
            "source": {"address": None, "outcomes": []},
            "target": {"address": "q", "dynamic": False, "capabilities": []},
            "has_unsettled": False,
            "initial_delivery_count": 0,
        },
    ),
    Golden(
        "attach of a sender of settled messages to a queue",
        RHEA,
        "0000005702000000005312d0000000470000000aa1027332520142500140005328d00000000a00000001a104"
        "68657265005329d00000001c00000007a101714040404040f00000000b00000001a3057175657565404043",
        {
            "handle": 1,
            "snd_settle_mode": 1,
            "source": {"address": "here"},
            "target": {"address": "q", "expiry_policy": "session-end", "capabilities": ["queue"]},
        },
    ),
    Golden(
        "attach that creates a temporary queue",
        RHEA,
        "0000007902000000005312d0000000690000000aa1027333520242404000532845005329d00000004d000000"
        "074040a30b6c696e6b2d6465746163684041d10000001900000002a30f6c69666574696d652d706f6c696379"
        "00532b45f00000001500000001a30f74656d706f726172792d7175657565404043",
        {
            "target": {
                "address": None,
                "dynamic": True,
                "expiry_policy": "link-detach",
                "dynamic_node_properties": {"lifetime-policy": Described(ULong(0x2B), [])},
                "capabilities": ["temporary-queue"],
            }
        },
    ),
    Golden(
        "attach of an anonymous sender",
        RHEA,
        "0000002802000000005312d0000000180000000aa102733452034240400053284500532945404043",
        {"role": False, "target": {"address": None, "dynamic": False, "capabilities": []}},
    ),
    Golden(
        "attach of a receiver",
        RHEA,
        "0000003002000000005312d00000002000000007a10272315204414040005328d00000000700000001a10171"
        "00532945",
        {
            "name": "r1",
            "handle": 4,
            "role": True,
            "snd_settle_mode": 2,
            "initial_delivery_count": -1,
            "source": {"address": "q", "filter": [], "distribution_mode": None},
            "target": {"address": None},
        },
    ),
    Golden(
        "attach of a browser with a selector, to settle second",
        RHEA,
        "0000008c02000000005312d00000007c00000007a102623152044150025001005328d0000000610000000ba1"
        "017143a30b6c696e6b2d646574616368404040a304636f7079d10000002c00000002a30c6a6d732d73656c65"
        "63746f7200800000468c00000004a10e636f6c6f7572203d2027726564274040f00000000b00000001a30571"
        "7565756500532945",
        {
            "rcv_settle_mode": 1,
            "source": {
                "address": "q",
                "expiry_policy": "link-detach",
                "distribution_mode": "copy",
                "filter": [
                    {"key": "jms-selector", "descriptor": 0x468C00000004, "value": "colour = 'red'"}
                ],
                "capabilities": ["queue"],
            },
        },
    ),
    Golden(
        "attach of a sender",
        GO_AMQP,
        "0000003202000000005312d0000000220000000aa10273314342404000532845005329d00000000700000001"
        "a10171404043",
        {
            "name": "s1",
            "handle": 0,
            "role": False,
            "snd_settle_mode": 2,
            "rcv_settle_mode": 0,
            "target": {"address": "q"},
            "initial_delivery_count": 0,
        },
    ),
    Golden(
        "attach of a sender of settled messages to a queue, with properties",
        GO_AMQP,
        "0000006202000000005312d0000000520000000ea1027332520142500140005328d00000000a00000001a104"
        "68657265005329d00000001600000007a101714040404040e00801a3057175657565404043404040d1000000"
        "0900000002a301615501",
        {
            "snd_settle_mode": 1,
            "source": {"address": "here"},
            "target": {"address": "q", "capabilities": ["queue"]},
        },
    ),
    Golden(
        "attach that creates a temporary queue, its lifetime left out",
        GO_AMQP,
        "0000005602000000005312d0000000460000000aa1027333520242404000532845005329d00000002a000000"
        "074040a30b6c696e6b2d646574616368404140e01201a30f74656d706f726172792d7175657565404043",
        {
            "target": {
                "address": None,
                "dynamic": True,
                "expiry_policy": "link-detach",
                "dynamic_node_properties": {},
                "capabilities": ["temporary-queue"],
            }
        },
    ),
    Golden(
        "attach of an anonymous sender, to be settled second",
        GO_AMQP,
        "0000003702000000005312d0000000270000000da102733452034240500100532845005329454040434040e0"
        "0a01a30744495343415244",
        {"rcv_settle_mode": 1, "target": {"address": None}, "desired_capabilities": ["DISCARD"]},
    ),
    Golden(
        "attach of a receiver",
        GO_AMQP,
        "0000003002000000005312d00000002000000007a10272315204414040005328d00000000700000001a10171"
        "00532945",
        {
            "name": "r1",
            "handle": 4,
            "role": True,
            "snd_settle_mode": 2,
            "initial_delivery_count": -1,
            "source": {"address": "q"},
            "target": {"address": None},
        },
    ),
    Golden(
        "attach of a browser with a selector, an expiry time-out and a limit",
        GO_AMQP,
        "000000a702000000005312d0000000970000000ba1026231520441405001005328d0000000710000000ba101"
        "7140a30b6c696e6b2d64657461636852054040a304636f7079d10000004100000002a3216170616368652e6f"
        "72673a73656c6563746f722d66696c7465723a737472696e6700800000468c00000004a10e636f6c6f757220"
        "3d2027726564274040e00801a3057175657565005329454040408000000000000186a0",
        {
            "rcv_settle_mode": 1,
            "max_message_size": 100000,
            "source": {
                "address": "q",
                "expiry_policy": "link-detach",
                "timeout": 5,
                "distribution_mode": "copy",
                "filter": [
                    {
                        "key": "apache.org:selector-filter:string",
                        "descriptor": 0x468C00000004,
                        "value": "colour = 'red'",
                    }
                ],
                "capabilities": ["queue"],
            },
        },
    ),
    Golden(
        "attach of a receiver to a node that is to be made",
        GO_AMQP,
        "0000003202000000005312d00000002200000007a10264315204414040005328d00000000900000005404040"
        "404100532945",
        {"role": True, "source": {"address": None, "dynamic": True, "dynamic_node_properties": {}}},
    ),
    Golden(
        "attach of a sender with properties",
        PYAMQP,
        "0000009b02000001005312c08e0ea12462623566313733352d636631632d343131662d623164322d37303132"
        "62303965353234305201560050005000005328c03d0ba13073656e6465722d6c696e6b2d6262356631373335"
        "2d636631632d343131662d623164322d37303132623039653532343040404040404040404040005329c00a07"
        "a10171404040404040404043444040c10602a301615401",
        {
            "handle": 1,
            "role": False,
            "snd_settle_mode": 0,
            "rcv_settle_mode": 0,
            "target": {
                "address": "q",
                "durable": 0,
                "expiry_policy": "session-end",
                "dynamic": False,
            },
            "has_unsettled": False,
            "initial_delivery_count": 0,
            "max_message_size": 0,
            "desired_capabilities": [],
        },
    ),
    Golden(
        "attach of a receiver, to settle second",
        PYAMQP,
        "0000009e02000001005312c0910ea12434323733316633372d303733382d343962352d623632652d36613563"
        "65346664616265355201560150005001005328c00e0ba1017140404040404040404040005329c03b07a13272"
        "656365697665722d6c696e6b2d34323733316633372d303733382d343962352d623632652d36613563653466"
        "6461626535404040404040404040800000000000100000404040",
        {
            "role": True,
            "snd_settle_mode": 0,
            "rcv_settle_mode": 1,
            "initial_delivery_count": -1,
            "max_message_size": 1048576,
            "source": {"address": "q", "filter": [], "outcomes": []},
        },
    ),
    Golden(
        "attach of a browser with a selector, described by a symbol and in binary",
        PYAMQP,
        "0000010002000001005312c0f30ea12462383237313765372d363930622d343533342d396338652d32306664"
        "30303461613334325201560150005001005328c0700ba1017143a30b6c696e6b2d64657461636852054040a3"
        "04636f7079c14302a30c6a6d732d73656c6563746f7200a3216170616368652e6f72673a73656c6563746f72"
        "2d66696c7465723a737472696e67a00e636f6c6f7572203d2027726564274040e00b01b30000000571756575"
        "65005329c03b07a13272656365697665722d6c696e6b2d62383237313765372d363930622d343533342d3963"
        "38652d323066643030346161333432404040404040404040800000000000100000404040",
        {
            "source": {
                "address": "q",
                "durable": 0,
                "expiry_policy": "link-detach",
                "timeout": 5,
                "distribution_mode": "copy",
                "filter": [
                    {
                        "key": "jms-selector",
                        "descriptor": "apache.org:selector-filter:string",
                        "value": b"colour = 'red'",
                    }
                ],
                "capabilities": ["queue"],
            }
        },
    ),
    Golden(
        "attach that creates a temporary queue, its lifetime left out",
        PYAMQP,
        "000000b502000001005312c0a80ea12464303238653432662d353331332d343637332d383833622d37313465"
        "63656434626466345201560050005001005328c03d0ba13073656e6465722d6c696e6b2d6430323865343266"
        "2d353331332d343637332d383833622d37313465636564346264663440404040404040404040005329c02b07"
        "4040a30b6c696e6b2d64657461636840560140e01501b30000000f74656d706f726172792d71756575654040"
        "4344404040",
        {
            "target": {
                "address": None,
                "dynamic": True,
                "expiry_policy": "link-detach",
                "dynamic_node_properties": {},
                "capabilities": ["temporary-queue"],
            }
        },
    ),
    Golden(
        "attach that creates a temporary queue",
        PROTON,
        "0000007a02000000005312c06d0ba102643152024250025000005328c006054043404342005329c04d074043"
        "a30b6c696e6b2d6465746163684341d10000001900000002a30f6c69666574696d652d706f6c69637900532b"
        "45f00000001800000001b30000000f74656d706f726172792d717565756540404344",
        {
            "target": {
                "address": None,
                "dynamic": True,
                "expiry_policy": "link-detach",
                "dynamic_node_properties": {"lifetime-policy": Described(ULong(0x2B), [])},
                "capabilities": ["temporary-queue"],
            }
        },
    ),
    Golden(
        "attach of a browser of settled messages",
        PROTON,
        "0000004602000000005312c0390ba102623152034150015001005328c01107a1017152014052054240a30463"
        "6f7079005329c0060540434043424040438000000000000186a0",
        {
            "snd_settle_mode": 1,
            "rcv_settle_mode": 1,
            "max_message_size": 100000,
            "source": {
                "address": "q",
                "durable": 1,
                "expiry_policy": "session-end",
                "timeout": 5,
                "distribution_mode": "copy",
            },
        },
    ),
]
