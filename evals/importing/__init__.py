"""Public data sets as workloads, one file a family of formats."""
