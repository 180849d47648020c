"""A tape: one trajectory on disk, append-only, written while it happens.

This text is the format; whoever follows it can write a reader (tests/tape_reader.py is one
that shares nothing with this package; tests/data/tapes holds tapes to try one on).

**File.** `tape = "STUMBLE" format frame*`: seven bytes, one byte with the format number (2, or
1), frames up to the end of the file. Integers are unsigned and little-endian.

**Frame.** `frame = length(4) crc(4) kind(1) payload(length)`. `crc` is the CRC-32 of zlib over
kind and payload. The payload of kinds 1 to 63 is one msgpack value; where that holds bytes, it
may hold a msgpack extension of type 1 instead, which is one zstd frame of these bytes (length
in its header). What becomes known at once is written with one `write`; a thread calls
fdatasync every 100 ms, so a power cut costs at most that, and a killed process nothing.

**Block.** The payload of kind 64 is one zstd frame (length in its header, window up to 8 MB) of
whole frames, none of kind 64, which stand there as they would in the file. A sealed tape has its
first frame and then only blocks; frames and blocks may be mixed. Of a damaged block a reader may
take the frames before the damage: our blocks begin a new zstd block every 4 KB, so that not all
is lost with one byte. Nothing is encrypted.

**Kinds.** Maps have text keys; a key with ? may be absent, and then means None, or what follows
the =. Times are seconds since the trajectory began (float), `recorded_at` alone is seconds
since the epoch. `headers` are a list of [name, value], texts of latin-1, in the order and case
of the wire. Bodies and chunks are bytes as on the wire, content encoding included.

    1 trajectory  map; the first frame. id, recorded_at, and the other fields of
                  traces.model.Trajectory where they are not at their default;
                  verbatim?=false: true where secrets were written as they came
    2 request     map. seq (int, one number per exchange, in order of asking), connection and
                  stream (int; which connection of the agent, and which stream of HTTP/2 on it),
                  transport (text), started (float), by (text: who answered, as far as known),
                  method, url (text), headers, body (see below), edits?=[] (list of [start,
                  stop, bytes]: what went on instead of body[start:stop]), redacted?=false,
                  cascade?=false, pinned?=[] (texts; both as in traces.model.Exchange)
    3 head        map. seq, at (float), status (int), reason, version (text), headers, by. A
                  second one of the same seq begins the answer anew: the chunks so far are void
    4 chunk       [seq, at, data]; one message each where transport is websocket. In format 1
                  [seq, at, sent, data], where sent (bool) was never true
    5 done        map. seq, by; if there was an answer: bytes (int, of all chunks) and ended
                  (float or nil); trailers?=[], error? (text), headers? (in place of those of
                  the head, where redaction changed the length), redacted?=false
    6 injection   map: the fields of traces.model.Injection, edits as in 2
    7 ending      map: the fields of traces.model.Ending; the last fact of a run that ended
    8 contents    map; the last frame of a sealed tape, from which all of it follows (see below)
    9 mark        map: the fields of traces.model.Mark; what the command of the run told beside
                  its traffic

    64 block      see above

**Body.** Bytes; or a map of parent (int, the seq of an earlier request on this tape) and pieces
(a list of bytes and of [start, stop], which is that stretch of the parent's body), to be joined.
Every chain of parents ends at bytes: KEY_EVERY and the length of the tape bound it (see
traces.delta). Format 1 has a list instead: [parent, prefix, suffix, middle, packed], which is
`parent[:prefix] + middle + parent[len - suffix:]`, or, where packed is true, the zstd frame
`middle` with the parent's body as raw dictionary (window up to 128 MB). It has no extensions
and no blocks.

**Contents.** Where everything stands, so that one exchange can be read without the others. Offsets
count the bytes behind the eighth of the tape with its blocks opened: of all frames that are not
blocks, and in place of each block of the frames in it. A run is a stretch of whole frames. Lists
of runs are said as steps, each from the edge before (the first from 0): to where a run starts,
from there to where it stops, from there to where the next one starts (less than 0 if that is
further to the front), and so on. seqs: of all exchanges, in the order of asking, in which
`started` never falls. keys: bytes, 16 for each of them, the BLAKE2b (digest of 16 bytes, no key)
of the length of "METHOD URL" in 8 bytes, big-endian for once, these in UTF-8 (surrogates as they
are), and the body. counts: how many runs each has. runs: steps of the runs of each, one after
the other. open: the seqs of those that have neither `error` nor `ended`, or whose answer is
damaged. rest: steps of the runs of what belongs to no exchange. Contents that are not the last
frame, or of a tape with damage, are to be left out; the frames are what counts.

**Reading what is not perfect.** A frame that does not fit into the file, whose crc is wrong or
whose kind is 0 or above 64 is damage: go on behind it if a whole frame stands there, else look
for the next offset at which one does, within 1 MB; if there is none, the rest is a torn tail.
Say what was lost. A value that cannot be made sense of (no parent, no such exchange, not
msgpack) costs its own frame only. Leave out kinds and map keys that you do not know. Refuse a
format number above your own. A request without `done` was still under way; if `done` counts
other bytes than there are, the answer is damaged. A tape without `ending` was not closed. A
tape whose first frame is lost is none.

**Versions.** A new key or kind does not change the format number, a new meaning does, and then
the old form is read as well: tapes of every format always open.
"""

from traces.tape.contents import digest, over
from traces.tape.frames import Damage
from traces.tape.reader import Tape, browse, read, request
from traces.tape.sealing import seal
from traces.tape.shelf import Shelf
from traces.tape.writer import Writer
from traces.unrecordable import Unrecordable

__all__ = [
    "Damage",
    "Shelf",
    "Tape",
    "Unrecordable",
    "Writer",
    "browse",
    "digest",
    "over",
    "read",
    "request",
    "seal",
]
