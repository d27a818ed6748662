"""`tf.app`: the entry point of a program."""

import sys

from ferroflow.python.platform import flags  # noqa: F401  programs use tf.app.flags


def run(main=None, argv=None):
    """Reads the flags, runs `main(argv)` with the other words, and exits with what it returns."""
    try:
        rest = flags.FLAGS(sys.argv if argv is None else argv, known_only=True)
    except flags.Error as e:
        sys.stderr.write(f"FATAL Flags parsing error: {e}\nPass --helpshort or --helpfull to see help on flags.\n")
        sys.exit(1)
    main = main or sys.modules["__main__"].main
    sys.exit(main(rest))
