"""AMQP 1.0 without I/O: core specification parts 1, 2, 3 and 5 as a server needs them.

Start reading at `connection.py` (the door), `events.py` (what it tells its
owner) and `lifecycle.py` (what may follow what). `limits.py` has every limit.
"""
