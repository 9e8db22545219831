"""Tests of `broker.jms`."""
