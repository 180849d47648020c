"""What the pages show, as plain values made of tapes and rows of the store."""
