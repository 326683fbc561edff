"""`unisono completion`: what a shell needs to complete commands, options and choices."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.cli.completion.command_tree import Entry

_EXAMPLES = """\
examples:
  source <(unisono completion bash)
  unisono completion bash > ~/.local/share/bash-completion/completions/unisono
  unisono completion zsh > "${fpath[1]}/_unisono"
  unisono completion fish > ~/.config/fish/completions/unisono.fish
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        prog="unisono completion",
        description="Print completions for a shell: commands, options, what they may be, and the "
        "names of jobs, queues and nodes of the cluster.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"))
    made.add_argument(
        "--offer",
        nargs=argparse.REMAINDER,
        metavar="WORD",
        help="what the shells ask: the words of a line so far; prints what the last may become",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    if arguments.offer is not None:
        from unisono.cli.completion.candidates import offered

        sys.stdout.writelines(f"{one}\n" for one in offered(arguments.offer))
        return 0
    if arguments.shell is None:
        raise InvalidManifest("", "name a shell: bash, zsh or fish")
    from unisono.cli.completion.command_tree import surface

    entries = list(surface())
    made = {"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell](entries)
    sys.stdout.write(made)
    return 0


# Where the cluster is asked: after these commands, and after options that take a name.
_NAMED = ("why", "get", "describe", "delete", "logs", "gpu")
_VALUED = "-q|--queue|-n|--namespace"
_ASKED = "|".join(
    (*(f"{one}\\ *" for one in _NAMED), *(f"*\\ {one}" for one in _VALUED.split("|")))
)


# ---- bash ----------------------------------------------------------------------------------------


def bash(entries: Sequence[Entry]) -> str:
    """Return a function for bash; where nothing is known it offers files."""
    commands = [entry.path[0] for entry in entries if len(entry.path) == 1]
    verbs = [" ".join(entry.path) for entry in entries if len(entry.path) > 1]
    offers = "\n".join(
        f'    "{" ".join(entry.path)}") words="{_words(entry)}" ;;' for entry in entries
    )
    values = "\n".join(
        f"    {_patterns(entry, option.names)}) words={_quoted(' '.join(option.choices))}"
        " is_value=1 ;;"
        for entry in entries
        for option in entry.options
        if option.choices
    )
    return f"""\
# Completions of unisono for bash.
_unisono() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local path="${{COMP_WORDS[1]}}" words="" is_value=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{" ".join(commands)} --help --version"
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    return
  fi
  if [ "$COMP_CWORD" -gt 2 ]; then
    case "$path ${{COMP_WORDS[2]}}" in
    {_either(verbs)}) path="$path ${{COMP_WORDS[2]}}" ;;
    esac
  fi
  case "$path $before" in
{values}
  esac
  if [ -z "$is_value" ]; then
    case "$path" in
{offers}
    esac
  fi
  if [ -z "$is_value" ] && [ "${{word#-}}" = "$word" ]; then
    case "$before" in {_VALUED}) words="" ;; esac
    case "${{COMP_WORDS[1]}} $before" in
    {_ASKED})
      words="$words $(unisono completion --offer "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null)" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  case "${{COMPREPLY[0]}}" in */) compopt -o nospace 2>/dev/null ;; esac
}}
complete -o default -o bashdefault -F _unisono unisono
"""


def _words(entry: Entry) -> str:
    return " ".join([*entry.words, *(name for one in entry.options for name in one.names)])


def _patterns(entry: Entry, names: Iterable[str]) -> str:
    return _either([f"{' '.join(entry.path)} {name}" for name in names])


def _either(texts: Sequence[str]) -> str:
    return "|".join(f'"{text}"' for text in texts) or '""'


# ---- zsh -----------------------------------------------------------------------------------------


def zsh(entries: Sequence[Entry]) -> str:
    """Return a function for zsh, with a word of explanation beside everything."""
    commands = [(entry.path[0], entry.help) for entry in entries if len(entry.path) == 1]
    cases = "\n".join(_zsh_case(entry) for entry in entries)
    verbs = _either([" ".join(entry.path) for entry in entries if len(entry.path) > 1])
    values = "\n".join(
        f"    {_patterns(entry, option.names)}) compadd -- {' '.join(option.choices)}; return ;;"
        for entry in entries
        for option in entry.options
        if option.choices
    )
    return f"""\
#compdef unisono
# Completions of unisono for zsh.
_unisono() {{
  local -a offers
  local where="${{words[2]}}"
  if (( CURRENT == 2 )); then
    offers=({" ".join(_zsh_offer(*one) for one in commands)})
    _describe command offers
    return
  fi
  if (( CURRENT > 3 )); then
    case "$where ${{words[3]}}" in
    {verbs}) where="$where ${{words[3]}}" ;;
    esac
  fi
  case "$where ${{words[CURRENT-1]}}" in
{values}
  esac
  case "$where" in
{cases}
  esac
  case "${{words[2]}} ${{words[CURRENT-1]}}" in
  {_ASKED})
    compadd -S '' -- ${{(f)"$(unisono completion --offer ${{words[2,CURRENT]}} 2>/dev/null)"}} ;;
  esac
  _describe option offers
  _files
}}
_unisono "$@"
"""


def _zsh_case(entry: Entry) -> str:
    offers = [_zsh_offer(word, "") for word in entry.words]
    offers += [_zsh_offer(name, one.help) for one in entry.options for name in one.names]
    return f'    "{" ".join(entry.path)}") offers=({" ".join(offers)}) ;;'


def _zsh_offer(word: str, told: str) -> str:
    return _quoted(f"{word}:{told.replace(':', ' ')}" if told else word)


# ---- fish ----------------------------------------------------------------------------------------


def fish(entries: Sequence[Entry]) -> str:
    """Return completions for fish, with a word of explanation beside everything."""
    lines = ["# Completions of unisono for fish."]
    for entry in entries:
        *above, name = entry.path
        when = _fish_within(above) if above else "__fish_use_subcommand"
        lines.append(f"complete -c unisono -n '{when}' -a {name} -d {_quoted(entry.help)}")
        within = _fish_within(entry.path)
        if entry.words and not entry.verbs:
            words = " ".join(entry.words)
            lines.append(f"complete -c unisono -n '{within}' -a {_quoted(words)}")
        for option in entry.options:
            spelled = " ".join(_fish_name(one) for one in option.names)
            takes = " -x" if option.choices else " -r" if option.takes else ""
            values = f" -a {_quoted(' '.join(option.choices))}" if option.choices else ""
            told = f"-d {_quoted(option.help)}"
            lines.append(f"complete -c unisono -n '{within}' {spelled}{takes}{values} {told}")
    named = " ".join((*_NAMED, "plan", "workloads"))
    asks = "(unisono completion --offer (commandline -opc)[2..] (commandline -ct) 2>/dev/null)"
    lines.append(f"complete -c unisono -n '__fish_seen_subcommand_from {named}' -a {_quoted(asks)}")
    return "\n".join(lines) + "\n"


def _fish_within(path: Sequence[str]) -> str:
    return "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path)


def _fish_name(name: str) -> str:
    return f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"


def _quoted(text: str) -> str:
    """Return text in single quotes, on one line, as all three shells read it."""
    plain = " ".join(text.split()).replace("\\", "/").replace("'", "’")
    return f"'{plain}'"
