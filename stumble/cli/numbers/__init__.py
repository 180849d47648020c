"""Commands that report, query, import and export."""
