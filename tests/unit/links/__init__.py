"""Tests of `broker.links`."""
