"""What outlives a process: a ledger of all releases about a dataset, and the stored releases of a run."""
