"""AMQP 1.0 without I/O: core specification parts 1 to 5 as a server needs them.

Start reading at `connection.py` (the entry point), `events.py` (the callbacks to its
owner) and `lifecycle.py` (the state tables). `limits.py` has every limit.
"""
