"""Tests of `broker.tracing`."""
