"""Run untrusted programs: in containers, and in processes with limits.

An agent runs in `docker_sandbox.open_docker_sandbox` or, without docker, in
`process_sandbox.open_process_sandbox`, which protects less and reports it; the programs it writes
are run by `limited_process.run_limited`, to be graded.
"""
