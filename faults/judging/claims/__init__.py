"""Claims: whether an agent's final answer claims success, by its end, structure and words."""
