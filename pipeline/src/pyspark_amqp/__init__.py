"""How Spark finds the source `amqp`: it looks through top-level packages named `pyspark_*`."""
