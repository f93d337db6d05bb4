"""`python -m atp` is `atp`."""

from atp.cli.main import main

main()
