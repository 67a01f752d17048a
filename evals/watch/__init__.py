"""Judge a rollout while traffic flows: e-values, declared looks, and the switch."""
