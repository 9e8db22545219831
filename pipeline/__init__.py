"""Messages and the broker's journal as tables of Apache Spark: the data source `amqp`, and jobs.

Of the broker it knows the JMS mapping and the codec, of its storage the names of
the journal's columns. The broker knows nothing of it.
"""
