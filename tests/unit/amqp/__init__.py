"""Tests of `broker.amqp`."""
