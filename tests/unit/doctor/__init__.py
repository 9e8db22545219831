"""Tests of `broker.doctor`."""
