"""Tests of `broker.audit`."""
