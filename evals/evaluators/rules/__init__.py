"""The rules of task completion, one file a family; each returns a `RuleResult`."""
