"""WebSocket for AMQP, without I/O: handshake, frames, limits. It knows nothing of the broker."""
