"""Facts about pipeline runs: stages, attempts and causes of failure."""
