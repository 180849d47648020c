"""Composition layer: runs, forks, campaigns, verdicts, reports and the command line.

Only this package may import several of the other packages. `runs` records, replays and forks,
`store` writes rows and verdicts of tapes, `cli` has one small module per command.
"""
