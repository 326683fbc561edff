"""Compile the hot modules, once, and print where the compiled copy is (`make compiled`).

python -m tools.compiled                   the last line of stdout is the folder, for PYTHONPATH
python -m tools.compiled --with COMMAND…   run a command with it; without, where none can be
"""

from __future__ import annotations

import os
import sys

from tools.compiled.cache import CannotCompile, build, say


def main(arguments: list[str]) -> int:
    """Build if needed; then tell the folder, or become the command."""
    if arguments and (arguments[0] != "--with" or len(arguments) == 1):
        print("usage: python -m tools.compiled [--with COMMAND…]", file=sys.stderr)
        return 2
    try:
        folder = str(build())
    except CannotCompile as error:
        if not arguments:
            say(str(error))
            return 1
        say(f"engine: interpreted; {error}")
        folder = ""
    if not arguments:
        print(folder)
        return 0
    paths = [folder, os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return os.execvpe(arguments[1], arguments[1:], environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
