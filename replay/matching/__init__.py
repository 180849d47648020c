"""Find the recorded exchange that answers a request."""
