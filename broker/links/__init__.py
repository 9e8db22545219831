"""The layer between AMQP and routing: it carries out attaches, deliveries and outcomes."""
