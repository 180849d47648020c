"""The demonstration: a campaign in the practice world."""
