"""Tests of `broker.routing`."""
