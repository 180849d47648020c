"""Where programs that nobody vouches for are run: containers, and processes with limits.

An agent runs in `docked.docked`, or, where there is no docker, in `confined.confined`, which holds
less and says so; what it made is run by `limited.run`, to be graded.
"""
