"""Base layer: values, the tape, the meaning of exchanges, the store and its SQL.

    model         values: exchanges, trajectories, faults, injections, outcomes
    taps          hooks that observe or change the traffic
    clock         run time, and waits that end on time
    tape          the recording format: writer, reader, sealing
    bodies        content encodings, JSON offsets, deltas, SSE, WebSocket traffic as exchanges
    dialects      lenses: parse and write the APIs of model providers
    conversation  kinds, lanes, tool calls and steps, derived from exchanges
    redaction     replacement of secrets before anything is written
    pipeline      stages, attempts and failure causes of pipeline runs
    store         the index: schema, rows, views and named SQL questions
    importers     recordings of other tools, read as tapes
    exporters     tapes written in the formats of other tools

Nothing here imports another package of the project.
"""
