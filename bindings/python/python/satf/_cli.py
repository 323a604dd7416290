"""The program ``satf``, as it is on the command line."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Runs the command line of this process and returns its exit code."""
    # Nothing of the package but the native module: no other thread may be there when signals are set up.
    from satf import _satf

    sys.stdout.flush()
    code = _satf.run_command_line(["satf", *sys.argv[1:]], [sys.executable, "-m", "satf"])
    # Threads of the program may still be there, and have nothing more to say.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
