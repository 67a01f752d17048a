"""Run a model's code against tests: in a sandbox, or in a restricted language without one."""
