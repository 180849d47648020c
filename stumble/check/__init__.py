"""`stumble check`: from an agent's command to a page of how it fails.

setup.py        what is asked of a check, and its time
touch.py        what a recorded run reached, and what of it is outside of a copy
recordings.py   the clean runs of each task
clean_phase.py  what may be recorded, how often, and what that shows
call_names.py   calls by what they do
fault_choice.py the faults worth trying, and those that are not
fault_phase.py  the faulted runs, until decided or at the budget
behaviour.py    what a run did with a fault, from its verdict and its facts
stored_runs.py  the runs of a check as the store has them
findings.py     sentences, and the table of tools and faults
page.py         the result as lines, plain data, and cases for CI
session.py      one session: clean runs, faults, result
saved_files.py  the files with which `stumble check` alone goes on
"""
