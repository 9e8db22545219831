"""Engines that run the statements of the jobs: Apache Spark, and DuckDB in this process."""
