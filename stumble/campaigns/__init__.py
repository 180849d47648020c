"""Campaigns: traces x faults x persistence x seeds x repetitions, on several processes.

asked     what is wanted, read from a table
cells     the runs that a recording gives, each with its address
ledger    which of them are on tapes already
worker    a process that records, plays and judges
conduct   who hands out what to whom, until all is done
power     how many injections it takes to tell two rates apart
outcome   what came of it
session   all of that, from what is on tapes to the verdicts
plan      what would be run, before anything is
progress  how far it is, while it runs
ground    where runs take place
bench     a campaign with weights and an analysis said beforehand
"""
