"""The ground floor: values, the tape, what exchanges mean, and the store with its SQL.

    model      the values: exchanges, trajectories, faults, injections, outcomes
    taps       where rooms meet the traffic
    websocket  the shape of WebSocket traffic, as exchanges
    frames     the bytes of a tape; `tape` folds them into exchanges; `delta` keeps them small
    redact     what must not be written; its text names the files it is made of
    dialects   the lenses: all that parses or writes what a model provider speaks
    kind, conversation, story      what an exchange is, whose it is, and what happened
    relations, index, store, sql   rows, where they lie, and the questions
    formats    runs that others recorded

Nothing here imports another room.
"""
