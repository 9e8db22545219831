"""Hostile bytes, by the million: what the broker must bear from anybody who reaches its port."""
