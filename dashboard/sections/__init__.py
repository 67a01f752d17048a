"""The sections of a rollout's page, one file a subject; each draws what it is handed."""
