"""The only asyncio of the AMQP side: sockets, timers, and the way from one to a `Peer`."""
