"""`python -m graft` is `graft`."""

from graft.cli.main import main

main()
