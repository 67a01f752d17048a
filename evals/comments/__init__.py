"""Put a verdict under a pull or merge request, as one comment that is kept up to date."""
