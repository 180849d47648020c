"""The SQL of a store on Apache Spark (extra `spark`)."""

MISSING_LIBRARY = "--on spark needs the extra spark: uv pip install 'stumble[spark]', and Java 17"
