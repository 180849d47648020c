"""The tape format: one trajectory per file, append-only, written during the run.

This text specifies the format and is sufficient to write a reader. A reader that shares no code
with this package is tests/support/stores/independent_tape_reader.py; tests/data/tapes holds tapes
to test a reader with.

**File.** `tape = "STUMBLE" format frame*`: seven bytes, one byte with the format number (2 or 1),
and frames up to the end of the file. Integers are unsigned and little-endian.

**Frame.** `frame = length(4) crc(4) kind(1) payload(length)`. `crc` is the CRC-32 of zlib over
kind and payload. The payload of kinds 1 to 63 is one msgpack value. In it, bytes may be replaced
by a msgpack extension of type 1, which is one zstd frame of these bytes (with its content size in
the header). Facts that become known together are written with one `write`. A thread calls
fdatasync every 100 ms: a power failure loses at most that much, a killed process nothing.

**Block.** The payload of kind 64 is one zstd frame (content size in its header, window up to 8 MB)
of whole frames, none of kind 64, in the same encoding as in the file. A sealed tape has its first
frame and then only blocks; a tape may also mix frames and blocks. A reader may use the frames of a
damaged block that precede the damage: the writer of this package starts a new zstd block every
4 to 32 KB, so that one damaged byte does not lose the entire block. Nothing is encrypted.

**Kinds.** Maps have text keys. A key marked ? is optional; its default is the value after =, or
None. Times are seconds since the start of the trajectory (float), except `recorded_at`, which is
seconds since the epoch. `headers` are a list of [name, value], latin-1 texts, in the order and
case of the wire. Bodies and chunks are bytes as on the wire, with their content encoding.

    1 trajectory  map; the first frame. id, recorded_at, and the other fields of
                  traces.model.Trajectory that are not at their default; verbatim?=false: true
                  if secrets were written unredacted; origin? (bytes: a keyed hash of what a
                  replay runs, by which its user's own recordings are known)
    2 request     map. seq (int, unique per exchange, in request order), connection and stream
                  (int; the connection of the agent, and the HTTP/2 stream on it), transport
                  (text), started (float), by (text: the source of the response, as far as
                  known), method, url (text), headers, body (see below), edits?=[] (list of
                  [start, stop, bytes]: the replacement of body[start:stop] when forwarded),
                  redacted?=false, cascade?=false, pinned?=[], renamed?=[] (texts, the latter
                  in pairs; all as in traces.model.Exchange)
    3 head        map. seq, at (float), status (int), reason, version (text), headers, by. A
                  second head of the same seq restarts the response: discard earlier chunks
    4 chunk       [seq, at, data]; one message each if transport is websocket. In format 1
                  [seq, at, sent, data], in which sent (bool) was never true
    5 done        map. seq, by; if there was a response: bytes (int, size of all chunks) and
                  ended (float or nil); trailers?=[], error? (text), substituted?=[] (texts,
                  as in traces.model.Exchange), headers? (replace those of
                  the head, if redaction changed the length), redacted?=false, unparsed? (bytes,
                  as in traces.model.Exchange)
    6 injection   map: the fields of traces.model.Injection; edits as in 2
    7 ending      map: the fields of traces.model.RunEnding; the last fact of a run that ended
    8 contents    map; the last frame of a sealed tape, derived from all others (see below)
    9 mark        map: the fields of traces.model.RunEvent, reported by the command of the run
                  apart from its traffic

    10 redactions list of maps: the secrets behind the placeholders on this tape, before the
                  first frame with such a placeholder, or after frame 1. tag (text: class and
                  number, as in REDACTEDo1xxZ), salt and mark (bytes: the BLAKE2b of the secret,
                  with a digest of 16 bytes and this salt), keyed (bool: true if that hash also
                  has a key, which is on no tape), names?=[] (texts: variables that held the
                  secret)

    11 rules      list of texts, read after the `rules` of frame 1: the differences from a
                  request that a replay ignores, accepted after the run; after all other frames

    12 input      data (bytes), whole (bool): the agent's standard input, if it was a pipe or a
                  file; whole is false if it was longer than data
    64 block      see above

**Body.** Bytes, or a map of parent (int, the seq of an earlier request on this tape) and pieces (a
list of bytes and of [start, stop], a slice of the parent's body), to be concatenated. Every chain
of parents ends at bytes: KEY_EVERY and the length of the tape bound it (see
traces.bodies.body_delta). Format 1 has a list instead: [parent, prefix, suffix, middle, packed].
It is `parent[:prefix] + middle + parent[len - suffix:]`; if packed is true, it is the zstd frame
`middle` with the parent's body as raw dictionary (window up to 128 MB). Format 1 has no extensions
and no blocks.

**Contents.** The index of a sealed tape, for reading one exchange without the others. Offsets
count the bytes after the eighth of the tape with its blocks opened: of all frames that are not
blocks, and, in place of each block, of the frames in it. A run is a stretch of whole frames. Lists
of runs are encoded as steps, each relative to the previous edge (the first to 0): to the start of
a run, from there to its stop, from there to the start of the next run (negative if that is at a
lower offset), and so on. seqs: of all exchanges, in request order, in which `started` never
decreases. keys: bytes, 16 per exchange, the BLAKE2b (digest of 16 bytes, no key) of the length of
"METHOD URL" in 8 bytes (big-endian, the one exception), of that text in UTF-8 (surrogates encoded
as they are), and of the body. counts: the number of runs of each exchange. runs: steps of the runs
of each exchange, concatenated. open: the seqs of those with neither `error` nor `ended`, or with a
damaged response. rest: steps of the runs of frames that belong to no exchange. Ignore contents
that are not the last frame, and those of a damaged tape; the frames are authoritative.

**Reading damaged tapes.** A frame that does not fit into the file, has a wrong crc, or a kind that
is 0 or above 64 is damage. Continue after it if a whole frame follows; otherwise search the next
1 MB for an offset at which a whole frame of a known kind begins; if there is no such offset, the
rest is a torn tail. Report the bytes lost. An invalid value (unknown parent or exchange, not
msgpack, a field of another type, a number that is not finite or is 2^53 or more, an invalid URL)
costs its own frame only. Ignore unknown kinds and map keys. Refuse a format number above your own.
A request without `done` was still in progress. If `done` counts other bytes than there are, the
response is damaged. A tape without `ending` was not closed. A tape that lost its first frame is
unreadable.

**Reading untrusted tapes.** A file is named after the id of its run: so an id, a parent and a
snapshot consist of letters, digits, ".", "_" and "-", begin with a letter or digit, and have at
most 200 characters; a file with another id is not a tape. A zstd frame with a content size above
1 MB and above 2048 times its own size is damage, and so is each value that makes the tape take
more memory than the larger of 256 MB and the smaller of 4096 times its own size and half of the
memory of the machine or cgroup. A body in pieces takes that of its pieces, since it is restored
only while it is read; one longer than half of what is left is damage, and so is one with which
all such bodies are longer than 256 MB and 20,480 times the tape, since they take time. In the
search for frames after damage, do not check more than 16 times the bytes of the tape.

**Versions.** A new key or kind does not change the format number. A new meaning does, and the old
form stays readable: tapes of every format always open.
"""
