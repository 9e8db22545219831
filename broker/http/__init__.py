"""The fast path: many messages, or rows of the event log, as Arrow streams over HTTP."""
