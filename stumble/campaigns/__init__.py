"""Campaigns: traces x faults x persistence x seeds x repetitions, on several processes.

spec            the campaign, parsed from a table
run_matrix      the runs that a recording gives, each with its address
completed_runs  the runs that are on tapes already
shards          the parts of a campaign for machines without a common folder
merge_shards    their stores, joined into one
task_runner     the protocol between a campaign and what does its tasks
local_workers   worker processes of this machine
worker_plan     which of both, and how many workers
cluster         workers on the nodes of a Ray cluster
worker          a process that records, replays and judges
scheduler       the tasks, handed out, and one result of each
sample_size     injections needed to distinguish two rates
results         progress and verdicts of a campaign
runner          one session, from the tapes to the verdicts
estimate        the runs, cost and time of a campaign before it starts
progress        progress bar and progress lines
environment     agent, hosts, world and workspace of the runs
bench           a campaign with fixed weights and a fixed analysis
"""
