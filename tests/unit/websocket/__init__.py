"""Tests of the package broker/websocket."""
