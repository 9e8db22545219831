"""`jms-broker load`: measure how many messages a broker moves, and how long each one takes.

Senders and receivers are processes of their own, `worker.py`; `run.py` starts them and gathers what
they measure. A client is one connection, `clients.py`. Proton's engine encodes and decodes frames;
its C functions are called for each message, since its Python objects would take most of the time.
"""
