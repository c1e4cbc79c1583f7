"""`python -m tgsr`: the same as `tgsr`."""

from tgsr.cli import main

if __name__ == "__main__":
    main()
