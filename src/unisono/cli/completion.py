"""`unisono completion`: what a shell needs to complete commands, options and choices."""

from __future__ import annotations

import argparse
import itertools
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType

from unisono.cli.commands import BY_NAME, COMMANDS, Command, module_of
from unisono.cli.help_format import HelpFormat
from unisono.engine.model.errors import InvalidManifest

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
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    made.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"))
    made.add_argument(
        "--offer",
        nargs=argparse.REMAINDER,
        metavar="WORD",
        help="used by the shells: the words of a line so far; prints completions of the last one",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    if arguments.offer is not None:
        sys.stdout.writelines(f"{one}\n" for one in offered(arguments.offer))
        return 0
    if arguments.shell is None:
        raise InvalidManifest("", "name a shell: bash, zsh or fish")
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


def _zsh_offer(word: str, about: str) -> str:
    return _quoted(f"{word}:{about.replace(':', ' ')}" if about else word)


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
            about = f"-d {_quoted(option.help)}"
            lines.append(f"complete -c unisono -n '{within}' {spelled}{takes}{values} {about}")
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


# ---- the command tree ----------------------------------------------------------------------------
# Read from the parsers themselves, so completions and the reference cannot fall behind them.


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command: how it is spelled, what it takes, what it is for."""

    names: tuple[str, ...]
    takes: str  # what stands after it; empty if nothing
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A command or a verb of one, with all that may follow it."""

    path: tuple[str, ...]
    help: str
    parser: argparse.ArgumentParser | None  # None: a program of Slurm, which reads for itself
    verbs: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[Option, ...]:
        """Return its options, in the order of its help."""
        return tuple(_options(self.parser)) if self.parser is not None else ()

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words that may stand in its places."""
        if self.parser is None:
            return ()
        places = [one for one in self.parser._actions if not one.option_strings]
        return self.verbs or tuple(str(word) for one in places for word in one.choices or ())


def surface(commands: Sequence[Command] = COMMANDS) -> Iterator[Entry]:
    """Return every command and verb that can be typed after `unisono`, in the order of the help."""
    for command in commands:
        if command.module == BY_NAME:
            yield Entry((command.name,), command.help, None)
            continue
        parser = module_of(command).parser()
        parser.prog = f"unisono {command.name}"
        yield from _entries((command.name,), command.help, parser)


def _entries(path: tuple[str, ...], about: str, parser: argparse.ArgumentParser) -> Iterator[Entry]:
    below: dict[str, argparse.ArgumentParser] = {}
    helps: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = dict(action.choices)
            helps = {one.dest: one.help or "" for one in action._choices_actions}
    yield Entry(path, about, parser, tuple(below))
    for name, one in below.items():
        one.prog = f"unisono {' '.join(path)} {name}"
        yield from _entries((*path, name), helps.get(name, ""), one)


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for action in parser._actions:
        if not action.option_strings:
            continue
        choices = tuple(str(one) for one in action.choices or ())
        takes = ""
        if action.nargs != 0:
            metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
            takes = "|".join(choices) or metavar
        about = (action.help or "").replace("%(default)s", str(action.default))
        yield Option(tuple(action.option_strings), takes, choices, about.replace("%%", "%"))


# ---- names of objects ----------------------------------------------------------------------------
# For a shell that completes a word: asked of the cluster, quickly or not at all.
#
#     unisono why job/<TAB>        unisono get cq <TAB>        unisono plan -q <TAB>
#
# The user who presses the key waits: after a second, or without an answer, there is simply nothing
# to offer. Nothing that takes long to load is loaded here.

_MOST_SECONDS = 1.0
# A longer list takes longer to read than the name takes to type.
_MOST_NAMES = 500

_KUEUE = "apis/kueue.x-k8s.io/v1beta2"
_NODES = "api/v1/nodes"
_QUEUES = f"{_KUEUE}/clusterqueues"
# By their short names too; {} is where the namespace goes.
_KINDS: Mapping[tuple[str, ...], str] = {
    ("job", "jobs"): "apis/batch/v1/{}jobs",
    ("jobset", "jobsets"): "apis/jobset.x-k8s.io/v1alpha2/{}jobsets",
    ("trainjob", "trainjobs"): "apis/trainer.kubeflow.org/v1alpha1/{}trainjobs",
    ("vcjob", "vj"): "apis/batch.volcano.sh/v1alpha1/{}jobs",
    ("raycluster", "rayclusters"): "apis/ray.io/v1/{}rayclusters",
    ("rayjob", "rayjobs"): "apis/ray.io/v1/{}rayjobs",
    ("pytorchjob", "pytorchjobs"): "apis/kubeflow.org/v1/{}pytorchjobs",
    ("workload", "workloads", "wl"): f"{_KUEUE}/{{}}workloads",
    ("pod", "pods", "po"): "api/v1/{}pods",
    ("localqueue", "localqueues", "lq"): f"{_KUEUE}/{{}}localqueues",
    ("clusterqueue", "clusterqueues", "cq"): _QUEUES,
    ("cohort", "cohorts"): f"{_KUEUE}/cohorts",
    ("resourceflavor", "resourceflavors", "rf"): f"{_KUEUE}/resourceflavors",
    ("node", "nodes", "no"): _NODES,
    ("nodepool", "nodepools"): "apis/karpenter.sh/v1/nodepools",
    ("namespace", "namespaces", "ns"): "api/v1/namespaces",
}
_JOBS = ("job", "jobset", "trainjob", "vcjob", "raycluster", "rayjob", "pytorchjob", "workload")
_OF_OBJECTS = ("why", "get", "describe", "delete", "logs")
_VALUES = {"-q": _QUEUES, "--queue": _QUEUES, "-n": "api/v1/namespaces"}
_VALUES["--namespace"] = _VALUES["-n"]
_OPTIONS = {"-n": "namespace", "--namespace": "namespace", "--data-dir": "data-dir"}
_OPTIONS |= {"--kubeconfig": "kubeconfig", "--context": "context"}


def offered(words: Sequence[str]) -> list[str]:
    """Return what the last of the words after `unisono` may become; nothing if that is unknown."""
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, _MOST_SECONDS)
    try:
        return _offered(words)
    except Exception:  # noqa: BLE001  (no traceback into the line that is typed)
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


def _offered(words: Sequence[str]) -> list[str]:
    command, *before, word = words
    if before and before[-1] in _VALUES:
        return _names(_VALUES[before[-1]], before, word)
    if command == "gpu" and before and before[0] in ("inject", "heal"):
        return _names(_NODES, before, word)
    if command not in _OF_OBJECTS:
        return []
    places = _places(before)
    kind, slash, _ = word.partition("/")
    if slash:
        path = _path(kind)
        return [f"{kind}/{name}" for name in _names(path, before, word[len(kind) + 1 :])]
    if command == "logs":
        return _names("api/v1/{}pods", before, word)
    if places and command != "why":
        return _names(_path(places[0]), before, word)
    kinds = _JOBS if command == "why" else tuple(names[0] for names in _KINDS)
    end = "/" if command == "why" else ""
    return [f"{one}{end}" for one in kinds if one.startswith(word)]


def _places(words: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor their values."""
    found, is_value = [], False
    for word in words:
        if not is_value and not word.startswith("-"):
            found.append(word)
        is_value = word in _OPTIONS or word in ("-l", "-o", "--output")
    return found


def _path(kind: str) -> str:
    return next(path for names, path in _KINDS.items() if kind.lower() in names)


def _names(path: str, words: Sequence[str], start: str) -> list[str]:
    import json

    from unisono.cli.slurm_programs.dispatch import connect

    options = {
        _OPTIONS[option]: value for option, value in itertools.pairwise(words) if option in _OPTIONS
    }
    api = connect(options)
    namespace = options.get("namespace") or api.namespace
    everywhere = "-A" in words or "--all-namespaces" in words
    filled = path.format("" if everywhere else f"namespaces/{namespace}/")
    answer = json.loads(api.call("GET", f"/{filled}?limit={_MOST_NAMES}"))
    names = [str(one["metadata"]["name"]) for one in answer.get("items") or ()]
    return [name for name in names if name.startswith(start)]
