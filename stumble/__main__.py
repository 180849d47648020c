"""`python -m stumble`."""

from stumble.cli import main

main()
