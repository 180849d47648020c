"""Reading for the pages: the index as it changes, runs and exchanges that were read, SQL apart."""
