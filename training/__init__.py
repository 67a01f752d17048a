"""How the models that the package ships were trained; no part of the wheel."""
