"""The roof: puts the rooms together into runs, forks, verdicts and the command line.

Only this package may import several rooms. The life of a run is in `runs`, a fork with its
controls in `forks`, rows and verdicts of tapes in `indexing`, one small module per command in
`commands`.
"""
