"""Families of candidates against one baseline: grid, divergence, interaction, report."""
