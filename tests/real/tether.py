"""Run a program that dies with the process that started it, however that one ends.

    python tether.py PARENT_PID PROGRAM [ARGUMENT …]

Tests start servers this way: no `kill -9` of a test run leaves an etcd behind. It is a program of
its own because code between fork and exec is not safe in a process with threads. Where the kernel
is not Linux there is no such tether, and an orderly end must do.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent and become the program."""
    parent, program = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:  # it ended before the tether was tied
            sys.exit(1)
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
