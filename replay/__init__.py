"""Where answers come from: the player finds the recorded one, the performer performs it."""
