"""Objects as JSON or YAML, as people and scripts read them."""

from __future__ import annotations

from typing import Any

import yaml


def dump(value: Any, form: str) -> str:
    """Return a value as text in the form `json` or `yaml`."""
    if form == "yaml":
        return str(
            yaml.dump(
                value, Dumper=PLAIN, sort_keys=False, allow_unicode=True, default_flow_style=False
            )
        )
    import orjson

    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


# The C emitter where there is one; either writes equal parts twice rather than naming them.
PLAIN: Any = type(
    "PLAIN",
    (getattr(yaml, "CSafeDumper", yaml.SafeDumper),),
    {"ignore_aliases": lambda self, data: True},
)
