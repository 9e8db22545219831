"""Attach frames written by other implementations.

Captured from Qpid JMS 2.10.0 talking to Artemis 2.40.0, and from Qpid Proton 0.40.0 talking to
itself, so our codec had no part in them.
"""

from broker.amqp.types import Described, ULong
from tests.wire.golden import JMS, PROTON, Golden

FOUR_OUTCOMES = [
    "amqp:accepted:list",
    "amqp:rejected:list",
    "amqp:released:list",
    "amqp:modified:list",
]

ATTACHES = [
    Golden(
        "attach of a producer to a queue",
        JMS,
        "0000012502000001005312d0000001150000000aa144717069642d6a6d733a73656e6465723a49443a306465"
        "33313333392d616266342d343431622d626231362d3331663234623062616463623a313a313a313a6f726465"
        "7273434250005000005328c0940aa12d49443a30646533313333392d616266342d343431622d626231362d33"
        "31663234623062616463623a313a313a3143a30b73657373696f6e2d656e64434240404040e04e04a312616d"
        "71703a61636365707465643a6c69737412616d71703a72656a65637465643a6c69737412616d71703a72656c"
        "65617365643a6c69737412616d71703a6d6f6469666965643a6c697374005329c02407a1066f726465727343"
        "a30b73657373696f6e2d656e64434240e00801a3057175657565404243",
        {
            "name": "qpid-jms:sender:ID:0de31339-abf4-441b-bb16-31f24b0badcb:1:1:1:orders",
            "handle": 0,
            "role": False,
            "snd_settle_mode": 0,
            "rcv_settle_mode": 0,
            "initial_delivery_count": 0,
            "has_unsettled": False,
            "max_message_size": 0,
            "source": {
                "address": "ID:0de31339-abf4-441b-bb16-31f24b0badcb:1:1:1",
                "durable": 0,
                "expiry_policy": "session-end",
                "default_outcome": None,
                "outcomes": FOUR_OUTCOMES,
            },
            "target": {"address": "orders", "dynamic": False, "capabilities": ["queue"]},
        },
    ),
    Golden(
        "attach of an anonymous producer",
        JMS,
        "000000f902000001005312c0ec0aa142717069642d6a6d733a73656e6465723a49443a30646533313333392d"
        "616266342d343431622d626231362d3331663234623062616463623a313a313a323a6e756c6c520142500050"
        "00005328c0940aa12d49443a30646533313333392d616266342d343431622d626231362d3331663234623062"
        "616463623a313a313a3243a30b73657373696f6e2d656e64434240404040e04e04a312616d71703a61636365"
        "707465643a6c69737412616d71703a72656a65637465643a6c69737412616d71703a72656c65617365643a6c"
        "69737412616d71703a6d6f6469666965643a6c69737400532945404243",
        {
            "handle": 1,
            "role": False,
            "target": {"address": None, "expiry_policy": "session-end", "capabilities": []},
        },
    ),
    Golden(
        "attach of a browser with a selector",
        JMS,
        "0000011802000001005312d00000010800000007a146717069642d6a6d733a72656365697665723a49443a30"
        "646533313333392d616266342d343431622d626231362d3331663234623062616463623a313a313a313a6f72"
        "6465727352014150015000005328c0ac0ba1066f726465727343a30b6c696e6b2d646574616368434240a304"
        "636f7079c12902a30c6a6d732d73656c6563746f7200800000468c00000004a10e636f6c6f7572203d202772"
        "656427005327c0020141e04e04a312616d71703a61636365707465643a6c69737412616d71703a72656a6563"
        "7465643a6c69737412616d71703a72656c65617365643a6c69737412616d71703a6d6f6469666965643a6c69"
        "7374e00801a305717565756500532945",
        {
            "handle": 1,
            "role": True,
            "snd_settle_mode": 1,
            "rcv_settle_mode": 0,
            "initial_delivery_count": -1,
            "source": {
                "address": "orders",
                "distribution_mode": "copy",
                "expiry_policy": "link-detach",
                "filter": [
                    {"key": "jms-selector", "descriptor": 0x468C00000004, "value": "colour = 'red'"}
                ],
                "default_outcome": {"delivery_failed": True, "undeliverable_here": False},
                "outcomes": FOUR_OUTCOMES,
                "capabilities": ["queue"],
            },
            "target": {"address": None},
        },
    ),
    Golden(
        "attach of a consumer of a queue",
        JMS,
        "000000e302000001005312c0d607a146717069642d6a6d733a72656365697665723a49443a30646533313333"
        "392d616266342d343431622d626231362d3331663234623062616463623a313a313a333a6f72646572735201"
        "4150005000005328c07d0ba1066f726465727343a30b6c696e6b2d6465746163684342404040005327c00201"
        "41e04e04a312616d71703a61636365707465643a6c69737412616d71703a72656a65637465643a6c69737412"
        "616d71703a72656c65617365643a6c69737412616d71703a6d6f6469666965643a6c697374e00801a3057175"
        "65756500532945",
        {
            "role": True,
            "snd_settle_mode": 0,
            "source": {
                "address": "orders",
                "distribution_mode": None,
                "filter": [],
                "capabilities": ["queue"],
            },
        },
    ),
    Golden(
        "attach of a consumer of a topic without its own messages",
        JMS,
        "0000010602000001005312c0f907a144717069642d6a6d733a72656365697665723a49443a30646533313333"
        "392d616266342d343431622d626231362d3331663234623062616463623a313a313a353a6e65777352034150"
        "005000005328c0a20ba1046e65777343a30b6c696e6b2d64657461636843424040c12602a3086e6f2d6c6f63"
        "616c00800000468c00000003a10f4e6f4c6f63616c46696c7465727b7d005327c0020141e04e04a312616d71"
        "703a61636365707465643a6c69737412616d71703a72656a65637465643a6c69737412616d71703a72656c65"
        "617365643a6c69737412616d71703a6d6f6469666965643a6c697374e00801a305746f70696300532945",
        {
            "source": {
                "address": "news",
                "filter": [
                    {"key": "no-local", "descriptor": 0x468C00000003, "value": "NoLocalFilter{}"}
                ],
                "capabilities": ["topic"],
            }
        },
    ),
    Golden(
        "attach of a durable subscriber",
        JMS,
        "0000009e02000001005312c09107a10373756252034150005000005328c07b0ba1046e6577735202a3056e65"
        "766572434240a304636f707940005327c0020141e04e04a312616d71703a61636365707465643a6c69737412"
        "616d71703a72656a65637465643a6c69737412616d71703a72656c65617365643a6c69737412616d71703a6d"
        "6f6469666965643a6c697374e00801a305746f70696300532945",
        {
            "name": "sub",
            "source": {
                "address": "news",
                "durable": 2,
                "expiry_policy": "never",
                "distribution_mode": "copy",
            },
        },
    ),
    Golden(
        "attach of an unsubscribe lookup: no source",
        JMS,
        "0000001e02000000005312c01107a1037375624341500050004000532945",
        {"name": "sub", "role": True, "source": None, "target": {"address": None}},
    ),
    Golden(
        "attach that creates a temporary queue",
        JMS,
        "000000a702000000005312c09a0aa147717069642d6a6d733a74656d702d71756575652d63726561746f723a"
        "49443a30646533313333392d616266342d343431622d626231362d3331663234623062616463623a313a3143"
        "425000500000532845005329c03e074043a30b6c696e6b2d6465746163684341c11602a30f6c69666574696d"
        "652d706f6c69637900532b45e01201a30f74656d706f726172792d7175657565404243",
        {
            "source": {"address": None, "outcomes": []},
            "target": {
                "address": None,
                "dynamic": True,
                "expiry_policy": "link-detach",
                "dynamic_node_properties": {"lifetime-policy": Described(ULong(0x2B), [])},
                "capabilities": ["temporary-queue"],
            },
        },
    ),
    Golden(
        "attach of a transaction coordinator",
        JMS,
        "000000e602000002005312c0d90aa140717069642d6a6d733a636f6f7264696e61746f723a49443a30646533"
        "313333392d616266342d343431622d626231362d3331663234623062616463623a313a324342500050000053"
        "28c0660a4043a30b73657373696f6e2d656e64434240404040e04e04a312616d71703a61636365707465643a"
        "6c69737412616d71703a72656a65637465643a6c69737412616d71703a72656c65617365643a6c6973741261"
        "6d71703a6d6f6469666965643a6c697374005330c01d01e01a01a317616d71703a6c6f63616c2d7472616e73"
        "616374696f6e73404243",
        {"target": {"capabilities": ["amqp:local-transactions"]}},
    ),
    Golden(
        "attach of a sender",
        PROTON,
        "0000003a02000000005312c02d0ba10873656e6465722d31434250025000005328c006054043404342005329"
        "c00805a101714340434240404344",
        {
            "name": "sender-1",
            "handle": 0,
            "role": False,
            "snd_settle_mode": 2,
            "source": {"address": None, "expiry_policy": "session-end"},
            "target": {"address": "q"},
            "has_unsettled": False,
            "initial_delivery_count": 0,
            "max_message_size": 0,
        },
    ),
    Golden(
        "attach of a receiver, its filter described by a symbol",
        PROTON,
        "0000007d02000000005312c0700ba10a72656365697665722d3152014150025000005328c04808a101714340"
        "43424040d10000003900000002a30873656c6563746f7200a3216170616368652e6f72673a73656c6563746f"
        "722d66696c7465723a737472696e67a10561203d2031005329c00605404340434240404344",
        {
            "role": True,
            "source": {
                "address": "q",
                "filter": [
                    {
                        "key": "selector",
                        "descriptor": "apache.org:selector-filter:string",
                        "value": "a = 1",
                    }
                ],
            },
        },
    ),
    Golden(
        "attach of a receiver that has no source",
        PROTON,
        "0000003002000000005312c0230ba10873656e6465722d3143415002500040005329c00805a1017143404342"
        "40404344",
        {"name": "sender-1", "role": True, "source": None, "target": {"address": "q"}},
    ),
]
