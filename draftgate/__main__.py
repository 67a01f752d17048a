"""`python -m draftgate`."""

from draftgate.process import main

main()
