"""The data source, the sink and the jobs in a real Apache Spark."""
