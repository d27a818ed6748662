"""`python -m ferroflow`: the `ferroflow` command."""

from ferroflow._command import main

if __name__ == "__main__":
    main()
