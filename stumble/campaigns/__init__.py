"""Campaigns: traces x faults x persistence x seeds x repetitions, on several processes.

asked     what is wanted, read from a table
cells     the runs that a recording gives, each with its address
ledger    which of them are on tapes already
worker    a process that records, plays and judges
conduct   who hands out what to whom, until all is done
power     how many injections it takes to tell two rates apart
summary   what came of it
"""
