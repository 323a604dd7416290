"""``python -m satf``: the program ``satf``."""

from satf._cli import main

main()
