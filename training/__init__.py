"""Train the models that the package ships; not part of the wheel."""
