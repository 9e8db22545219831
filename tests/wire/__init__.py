"""Golden frames: bytes as other implementations and the specification write them."""
