"""Report of a store as one page: sections of charts, tables and side-by-side runs."""
