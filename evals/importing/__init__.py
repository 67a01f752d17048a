"""Convert public data sets to workloads, one file per family of formats."""
