"""Fuzzing: millions of hostile inputs, as any client that reaches the broker's port may send."""
