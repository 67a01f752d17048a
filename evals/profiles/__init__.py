"""Descriptions of the recorded generations, for plots and tables; no verdict rests on them."""
