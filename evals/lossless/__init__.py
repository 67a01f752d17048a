"""Check that speculation is lossless: greedy answers by token, sampled ones by e-values."""
