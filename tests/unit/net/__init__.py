"""Tests of `broker.net`."""
