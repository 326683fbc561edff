"""Write transcripts anew: `python -m tests.kubectl [name…]`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.kubectl.cluster import running
from tests.kubectl.transcript import TRANSCRIPTS, play, read, write


def main(names: list[str]) -> int:
    """Play the named transcripts, or all, and keep what they print."""
    for path in sorted(TRANSCRIPTS.glob("*.console")):
        if names and not any(name in path.stem for name in names):
            continue
        with tempfile.TemporaryDirectory() as directory, running(Path(directory)) as cluster:
            write(path, list(play(read(path), cluster)))
        print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
