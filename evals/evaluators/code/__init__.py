"""Running a model's code against its tests: in a sandbox, else in a restricted language."""
