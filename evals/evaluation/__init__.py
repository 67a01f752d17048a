"""Score the collector's generations that have no scores yet."""
