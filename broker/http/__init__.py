"""The fast path: many messages, or rows of the lifecycle journal, as Arrow streams over HTTP."""
