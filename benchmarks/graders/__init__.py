"""What `task_graders.py` measures, one file a data set."""
