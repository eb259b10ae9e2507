"""Random histories of a process that sends its outbox to a search server through a network and a server that fail on purpose.

`worker` is the process, which is killed with SIGKILL at random moments and started again; `faults` is what stands between it and the
server; `history` runs both, and compares the index with the state.
"""
