"""`tf.app`: runs a program's `main` after its flags are parsed."""

import sys

from ferroflow.python.platform import flags  # noqa: F401


def run(main=None, argv=None):
    """Parses the flags, calls `main(argv)` with the other arguments, and exits with its result."""
    main = main or sys.modules["__main__"].main
    argv = list(argv or sys.argv)
    asked = [a.lstrip("-").partition("=")[0] for a in argv[1:] if a.startswith("-")]
    if any(name in ("help", "helpfull", "helpshort") and name not in flags.FLAGS for name in asked):
        flags._print_help_and_exit()
    try:
        rest = flags.FLAGS(argv, known_only=True)
    except flags.Error as e:
        sys.stderr.write(f"FATAL Flags parsing error: {e}\n")
        sys.stderr.write("Pass --helpshort or --helpfull to see help on flags.\n")
        sys.exit(1)
    sys.exit(main(rest))
