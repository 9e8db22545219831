"""The jobs archive, compact, audit, report and replay: a module each, run by `pyspark_amqp.cli`."""
