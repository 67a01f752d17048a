"""The measurements of `task_graders.py`, one file per data set."""
