"""Import of recordings of other tools into the store.

Traffic (vcrpy cassettes, HAR, flow files of mitmproxy) becomes a tape, which can be shown, replayed
and forked like any other; the source is not kept, since it may contain secrets. Conversations
(tau-bench, mini-swe-agent and the like) have no exchanges and become rows; a redacted copy of their
source is kept, so that the index can be rebuilt.

    safe_yaml      YAML and JSON into plain values, without running or unfolding anything
    detect_format  format of a file by its content
    to_tape        traffic into a tape
    import_files   import of files and folders, with a result for each
"""
