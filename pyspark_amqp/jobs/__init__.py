"""The jobs archive, compact, audit, report and replay, which `pyspark_amqp.cli` runs."""
