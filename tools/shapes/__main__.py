"""Make the data files of `unisono.kinds.shapes`: `python -m tools.shapes --sources DIR`.

DIR holds the modules named in `sources.py`, laid out like a Go module cache; with network access,
`go mod download -json MODULE@VERSION` puts each of them there and `go env GOMODCACHE` says where.
Nothing of it is kept but facts: names, types, defaults, list keys, rules. The words are ours.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.shapes.assemble import assemble, text_of
from tools.shapes.describe import Sentences

_OUTPUT = Path(__file__).parents[2] / "src/unisono/kinds/shapes/data"


def main() -> None:
    """Write all files and say what is missing."""
    parser = argparse.ArgumentParser(prog="python -m tools.shapes", description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="where the modules are")
    parser.add_argument("--missing", action="store_true", help="list fields without a sentence")
    arguments = parser.parse_args()
    sentences = Sentences()
    _OUTPUT.mkdir(exist_ok=True)
    total = 0
    for group, content in assemble(arguments.sources, sentences).items():
        text = text_of(content)
        total += len(text)
        (_OUTPUT / f"{group or 'core'}.json").write_text(text)
        print(f"{len(text):8} {group or 'core'}: {len(content['kinds'])} kinds")
    print(f"{total:8} in all; {len(sentences.missing)} fields have no sentence")
    if arguments.missing:
        for key, where in sorted(sentences.missing.items()):
            print(f"{key:40} {where}")


if __name__ == "__main__":
    main()
