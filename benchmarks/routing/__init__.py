"""What the router's benchmark is made of: proxies in processes, and a load that costs little."""
