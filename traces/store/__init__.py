"""The store index: schema, rows and SQL."""
