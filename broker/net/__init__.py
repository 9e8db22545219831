"""The only asyncio code of the AMQP side: sockets, timers, and how these reach a `Peer`."""
