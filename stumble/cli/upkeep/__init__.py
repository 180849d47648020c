"""Commands of the practice world, and for the maintenance of a store and its secrets."""
