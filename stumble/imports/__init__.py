"""What others recorded, brought into the store.

Two kinds, kept apart. Traffic (vcrpy cassettes, HAR, flow files of mitmproxy) becomes a tape,
which can be shown, replayed and forked like any other; the source is not kept, since it may hold
secrets. Conversations (tau-bench, mini-swe-agent and the like) have no exchanges and become rows;
their source is kept, so that the index can be made anew, and neither is searched for secrets.

    documents   YAML and JSON into plain values, without running or unfolding anything
    kinds       which format a file is, by what it holds
    taping      traffic into a tape
    bringing    files and folders, one after the other, and what became of each
"""
