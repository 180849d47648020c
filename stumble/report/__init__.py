"""What a store says, as one page for people: sections of charts, tables and side-by-sides."""
