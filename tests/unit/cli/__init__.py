"""Tests of `broker.cli`."""
