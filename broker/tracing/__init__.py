"""Traces of messages, by OpenTelemetry: what a message that belongs to a trace did in the broker.

A broker with `[tracing]` observes all queues (`message_tracer.py`). For each message whose context
says that its trace is sampled (`trace_context.py`), it makes spans (`spans.py`), which a thread
sends to a collector (`span_exporter.py`, `otlp.py`). Other brokers import nothing of this package.
"""
