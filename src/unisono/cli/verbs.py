"""Commands of several verbs (`unisono sim VERB`): one module for each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from types import ModuleType

from unisono.cli.help_format import HelpFormat, described, examples_of


def add_verbs(command: argparse.ArgumentParser, verbs: Sequence[ModuleType]) -> None:
    """Describe every verb: a module with NAME, HELP, DESCRIPTION, add_arguments and run.

    The chosen one's `run` becomes the argument `work`.
    """
    listed = command.add_subparsers(
        dest="verb",
        required=True,
        metavar="VERB",
        title="verbs",
        parser_class=argparse.ArgumentParser,  # a command's own class is for itself alone
    )
    for verb in verbs:
        one = listed.add_parser(
            verb.NAME,
            help=verb.HELP,
            description=described(verb.DESCRIPTION),
            epilog=examples_of(verb.DESCRIPTION),
            formatter_class=HelpFormat,
        )
        verb.add_arguments(one)
        one.set_defaults(work=verb.run)


def run_verb(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    code: int = arguments.work(arguments)
    return code
