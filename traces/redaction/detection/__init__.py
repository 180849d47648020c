"""Secret detection: by form, by assignment and by place."""
