"""Golden frames: the bytes that other implementations write and the specification shows."""
