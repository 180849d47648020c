"""Model requests of stumble itself, through litellm."""
