"""What the collector's and the router's listeners share."""
