"""Answer requests from a recording: matching, the player tap, and the server that sends answers."""
