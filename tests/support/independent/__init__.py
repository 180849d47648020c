"""What files of others have, counted with plain json and yaml; nothing here is of this project.

Each function takes the files of a source and returns `Counts`. Definitions are those of the
sources: a step is a response of a model (of HTTP traffic, an exchange with a response), a call one
that it asked for, an error a result that says it failed.
"""
