"""`unisono install`: what `unisono controller` needs on a cluster, printed, checked or applied."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli.controller import OPERATORS, operators
from unisono.cli.help_format import HelpFormat
from unisono.cli.web_addresses import url

if TYPE_CHECKING:  # loading these takes longer than answering --help
    from unisono.cli.install.compare import Mechanism
    from unisono.cli.install.manifests import Wanted
    from unisono.kube.kubeconfig import Access

_EXAMPLES = """\
examples:
  unisono install --check                                  what is there, missing, in the way
  unisono install --image registry.example/unisono:0.1.0
  unisono install --admission webhook                      where policies are not wanted
  unisono install --operators none                         queues only; may create no pods
  unisono install --web-from ingress-nginx --host gpu.example
  unisono install --grafana https://grafana.example
  unisono install --print --without-crds | less
  unisono install --print | kubectl apply --server-side -f -

CRDs of other projects are never changed; missing ones are installed. Applying again changes only
what differs. Nothing is ever deleted.
"""


# The answer to --check, and a refusal to install: two schedulers would disturb each other.
_EMBEDDED = (
    "{} is the API of `unisono up`: all controllers are built into it, and there is nothing to "
    "install; name a Kubernetes cluster with --kubeconfig or --context"
)


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        description="Install our controllers on a Kubernetes cluster: namespace, definitions, an "
        "account with the rights needed, two replicas with probes, and what belongs to them.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    cluster = made.add_argument_group("cluster")
    controllers = made.add_argument_group("controllers")
    network = made.add_argument_group("network")
    what = made.add_mutually_exclusive_group()
    what.add_argument(
        "--print", action="store_true", dest="prints", help="print the manifests, without a cluster"
    )
    what.add_argument(
        "--check", action="store_true", dest="checks", help="list what is there and what is missing"
    )
    cluster.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="the kubeconfig of the cluster"
    )
    cluster.add_argument(
        "--context", default="", metavar="NAME", help="a context of the kubeconfig"
    )
    cluster.add_argument(
        "--namespace",
        default="unisono-system",
        metavar="NS",
        help="the namespace to install into (default: unisono-system)",
    )
    controllers.add_argument(
        "--image",
        default="",
        metavar="IMAGE",
        help="the controllers' image (default: unisono, this version)",
    )
    controllers.add_argument(
        "--replicas",
        type=int,
        default=2,
        metavar="N",
        help="the number of replicas; one leads (default: 2)",
    )
    controllers.add_argument(
        "--admission",
        choices=("auto", "policy", "webhook"),
        default="auto",
        help="how jobs of queues are suspended at their creation: by admission policies, by "
        "webhooks, or by webhooks only where the server has no such policies (default: auto)",
    )
    controllers.add_argument(
        "--operators",
        action="extend",
        type=operators,
        default=None,
        metavar="LIST",
        help="which kinds of jobs our controllers may run where no upstream operator does: "
        f"{','.join(OPERATORS)}, all or none; each has a role of its own (default: all)",
    )
    controllers.add_argument(
        "--machines",
        choices=("none", "karpenter", "autoscaler"),
        default="none",
        help="what provisions nodes for whole gangs; each has a role of its own (default: none)",
    )
    network.add_argument(
        "--visibility",
        action="store_true",
        help="have the API server answer for visibility.kueue.x-k8s.io, where kueuectl reads the "
        "pending workloads of a queue; what Kueue left of that name is replaced",
    )
    network.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name of the web page or the metrics; may be repeated",
    )
    network.add_argument(
        "--web-from",
        default="",
        metavar="NS",
        help="let a TLS proxy in that namespace reach the web page "
        "(default: only a forwarded port reaches it)",
    )
    network.add_argument(
        "--web-tls-secret",
        default="",
        metavar="NAME",
        help="let the web page speak TLS itself, with the certificate of that Secret",
    )
    network.add_argument(
        "--grafana",
        type=url,
        metavar="URL",
        help="the address of a Grafana with our dashboards, as browsers reach it; the web page "
        "links to its panels",
    )
    network.add_argument(
        "--prometheus-namespace",
        default="monitoring",
        metavar="NS",
        help="the namespace that may scrape metrics (default: monitoring)",
    )
    network.add_argument(
        "--api-server",
        action="append",
        type=_network,
        default=[],
        metavar="CIDR",
        help="addresses of API servers; may be repeated (default: anywhere, on their ports)",
    )
    cluster.add_argument(
        "--without-crds", action="store_true", help="do not install CustomResourceDefinitions"
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print, check or apply."""
    import asyncio

    from unisono.cli.connection import in_plain_words
    from unisono.cli.install.manifests import Wanted
    from unisono.engine.model.errors import InvalidManifest
    from unisono.kube.kubeconfig import find_access

    chosen = {"image": arguments.image} if arguments.image else {}
    if arguments.web_from and arguments.web_tls_secret:
        raise InvalidManifest("--web-from", "and --web-tls-secret exclude each other; choose one")
    wanted = Wanted(
        namespace=arguments.namespace,
        replicas=arguments.replicas,
        operators=OPERATORS if arguments.operators is None else tuple(arguments.operators),
        machines=arguments.machines,
        visibility=arguments.visibility,
        hosts=tuple(arguments.host),
        web_from=arguments.web_from,
        web_tls=arguments.web_tls_secret,
        grafana=arguments.grafana or "",
        scraped_from=arguments.prometheus_namespace,
        api_servers=tuple(arguments.api_server),
        **chosen,
    )
    if arguments.prints:
        _print(wanted, arguments.admission, has_crds=not arguments.without_crds)
        return 0
    with in_plain_words():
        access = find_access(path=arguments.kubeconfig, context=arguments.context)
        return asyncio.run(_ask(access, arguments, wanted))


def _network(text: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 10.0.0.0/24: {error}") from error


def _print(wanted: Wanted, mechanism: Mechanism, *, has_crds: bool) -> None:
    from dataclasses import replace

    from unisono.cli.crds import write_yaml
    from unisono.cli.install.manifests import ALL_ADMISSION, admission, definitions, flows, objects
    from unisono.runtime.webhook.configuration import KINDS

    if has_crds:
        write_yaml(definitions())
    if mechanism == "webhook":
        write_yaml(objects(replace(wanted, webhooks=frozenset(KINDS))))
    else:
        write_yaml(objects(wanted))
        write_yaml(flows(wanted))
        write_yaml(admission(ALL_ADMISSION, wanted.namespace))


async def _ask(access: Access, arguments: argparse.Namespace, wanted: Wanted) -> int:
    from unisono.cli.connection import is_embedded
    from unisono.cli.install.compare import apply, look
    from unisono.kube.connect import connected
    from unisono.runtime import AnswerIsNo
    from unisono.runtime.clock import RealClock
    from unisono.runtime.ids import new_uid, random_source

    async with connected(
        access, clock=RealClock(), random_source=random_source(), ids=new_uid
    ) as client:
        if await is_embedded(client):
            if not arguments.checks:
                raise AnswerIsNo(_EMBEDDED.format(access.server))
            print(_EMBEDDED.format(access.server))
            return 0
        found = await look(
            client.variant(most_tries=1),
            wanted,
            RealClock().now(),
            has_crds=not arguments.without_crds,
            mechanism=arguments.admission,
        )
        if arguments.checks:
            for line in found.lines():
                print(line)
            return 0 if found.is_complete else 1
        found.refuse_conflicts()
        for change in await apply(client, found):
            print(change)
    return 0
