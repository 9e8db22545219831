"""A conformance harness for AMQP 1.0 brokers: `tests.conformance` here, `broker.conformance` in
the wheel, so its modules name each other relatively."""
