"""The page of all kinds that the embedded API serves, from their shapes."""

from __future__ import annotations

from collections.abc import Sequence

from unisono.kinds.shapes.served import Served, served_kinds

_HEAD = """\
# Every kind

<!-- written by `make reference`; edit the shapes instead -->

What the embedded API serves. How our own readers take the fields of those that decide is in
[manifests](manifests.md); `kubectl explain KIND` tells every field. A version in bold is the one
that is stored.
"""


def page() -> str:
    """Return the page."""
    groups: dict[str, dict[str, list[Served]]] = {}
    for one in served_kinds():
        groups.setdefault(one.group, {}).setdefault(one.kind, []).append(one)
    parts = [_HEAD]
    for group, kinds in groups.items():
        rows = "\n".join(_row(versions) for versions in kinds.values())
        parts.append(
            f"## {group or 'core'}\n\n| kind | versions | plural | short | in |\n"
            f"| --- | --- | --- | --- | --- |\n{rows}\n"
        )
    return "\n".join(parts)


def _row(versions: Sequence[Served]) -> str:
    one = versions[0]
    names = ", ".join(
        f"**{each.version}**" if each.is_storage else each.version for each in versions
    )
    short = ", ".join(f"`{name}`" for name in one.short_names)
    place = "namespaces" if one.namespaced else "the cluster"
    return f"| `{one.kind}` | {names} | `{one.plural}` | {short} | {place} |"
