"""The numbers of the kinds of frames; `traces.tape` describes what each holds."""

TRAJECTORY, REQUEST, HEAD, CHUNK, DONE, INJECTION, ENDING = range(1, 8)
MARK, REDACTIONS, INPUT = 9, 10, 12
