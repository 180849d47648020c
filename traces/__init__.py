"""The ground floor: values, the tape, what exchanges mean, and the store with its SQL.

    model      the values: exchanges, trajectories, faults, injections, outcomes
    taps       where rooms meet the traffic
    websocket  the shape of WebSocket traffic, as exchanges
    tape       the format of a recording, its writer, reader and sealing; `delta` keeps it small
    redact     what must not be written; its text names the files it is made of
    dialects   the lenses: all that parses or writes what a model provider speaks
    kind, conversation, story      what an exchange is, whose it is, and what happened
    relations, index, store, sql   rows, where they lie, and the questions
    formats    runs that others recorded

Nothing here imports another room.
"""
