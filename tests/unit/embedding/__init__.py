"""Tests of `broker.embedding`."""
