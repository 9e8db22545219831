"""A conformance harness for AMQP 1.0 brokers.

It is `tests.conformance` here and `broker.conformance` in the wheel, so its modules import each
other relatively.
"""
