"""`stumble check`: from an agent's command to a page of how it fails.

touch.py       what a recorded run reached, and what of it is outside of a copy
fault_choice.py  the faults worth trying, and those that are not
recordings.py  the clean runs of each task
behaviour.py   what a run did with a fault, from its verdict and its facts
findings.py    sentences, and the table of tools and faults
page.py        the result as lines, plain data, HTML and cases for CI
session.py     one session: record, replay, inject until decided or at the budget
"""
