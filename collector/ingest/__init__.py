"""The way in: an export decoded, admitted, and written by one thread."""
