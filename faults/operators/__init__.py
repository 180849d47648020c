"""The operators, by family; each module registers its operators on import."""
