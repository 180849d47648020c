"""The packed run of `stumble quickstart`, and how it is shown."""
