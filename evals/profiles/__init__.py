"""Descriptions of what was recorded, for plots and tables; no verdict rests on them."""
