"""The SQL of a store on Apache Spark (extra `spark`)."""
