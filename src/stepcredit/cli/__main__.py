"""`python -m stepcredit.cli`."""

from stepcredit.cli import main

main()
