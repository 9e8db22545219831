"""Where AMQP meets routing: what an attach asks for, what deliveries and outcomes lead to."""
