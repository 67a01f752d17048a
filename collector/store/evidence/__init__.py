"""Reads generations, pairs and feedback."""
