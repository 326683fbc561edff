"""`unisono controller`: our controllers on a real Kubernetes cluster."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli.help_format import HelpFormat
from unisono.cli.web_addresses import url
from unisono.kinds.digits import whole_number

if TYPE_CHECKING:  # loading it takes longer than answering --help
    from unisono.kinds.policy.settings import Settings
    from unisono.monitor.prometheus import Prometheus
    from unisono.runtime.cluster.web import WebChoices

HOME = "unisono-system"
OPERATORS = ("jobset", "trainer", "volcano", "ray", "kubeflow", "slurm")
_MOST_RATE = 100_000
_LAST_PORT = 65_535

_EXAMPLES = """\
examples:
  unisono controller --kubeconfig ~/.kube/config --context gpu-cluster
  unisono controller --listen 0.0.0.0:8080 --log json      in a pod
  unisono controller --operators none                      queues only; other operators run the jobs
  unisono controller --policy policy.yaml
  unisono controller --ledger /ledger/ledger.db --prometheus http://prometheus.monitoring:9090

One of several replicas leads, by a Lease; the others are warm standbys. Where an upstream operator
runs (JobSet, Trainer, Training Operator, KubeRay, Volcano), ours for the same kinds stays off. Pods
of queued jobs wait behind the scheduling gate unisono.dev/gang until the whole gang has its nodes;
then kube-scheduler binds them there. SIGTERM finishes what was begun and releases the lease.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        description="Run our controllers on a Kubernetes cluster: that of --kubeconfig, of "
        "KUBECONFIG, of ~/.kube/config, or of the pod that this runs in.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    cluster = made.add_argument_group("cluster")
    jobs = made.add_argument_group("jobs and nodes")
    addresses = made.add_argument_group("addresses")
    web = made.add_argument_group("web page")
    records = made.add_argument_group("records and logs")
    cluster.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="the kubeconfig of the cluster"
    )
    cluster.add_argument(
        "--context", default="", metavar="NAME", help="a context of the kubeconfig"
    )
    cluster.add_argument(
        "--namespace",
        default="",
        metavar="NS",
        help="the namespace of the lease (default: the pod's, else unisono-system)",
    )
    addresses.add_argument(
        "--listen",
        type=address,
        default=("127.0.0.1", 0),
        metavar="HOST:PORT",
        help="the address of /healthz, /readyz and /metrics (default: 127.0.0.1, any free port)",
    )
    addresses.add_argument(
        "--webhook",
        type=address,
        default=None,
        metavar="HOST:PORT",
        help="the address of the admission webhooks, served over TLS with a certificate of our own "
        "(default: no webhooks; `unisono install` says when they are needed)",
    )
    addresses.add_argument(
        "--visibility",
        type=address,
        default=None,
        metavar="HOST:PORT",
        help="the address of the visibility API: pending workloads, which kueuectl and other tools "
        "read from visibility.kueue.x-k8s.io (default: not served; `unisono install --visibility` "
        "installs the APIService and the rights that it needs)",
    )
    web.add_argument(
        "--web",
        type=address,
        default=None,
        metavar="HOST:PORT",
        help="the address of the web page; users sign in with a token of the cluster and see what "
        "they may list (default: not served). From other machines it needs TLS: the two options "
        "below, or a proxy",
    )
    web.add_argument(
        "--web-tls-cert",
        type=Path,
        metavar="FILE",
        help="the certificate of the web page, with its chain; read again when it is renewed",
    )
    web.add_argument("--web-tls-key", type=Path, metavar="FILE", help="the key of that certificate")
    web.add_argument(
        "--web-behind-proxy",
        action="store_true",
        help="only a proxy that speaks TLS can reach the web page",
    )
    addresses.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name of the web page or the metrics; may be repeated. Requests for other "
        "names are refused, except for IP addresses and the Services of `unisono install`",
    )
    jobs.add_argument(
        "--operators",
        action="extend",
        type=operators,
        default=None,
        metavar="LIST",
        help=f"the kinds of jobs to run where no upstream operator does: "
        f"{','.join(OPERATORS)}, all or none; may be repeated (default: all). Give "
        "`unisono install` the same list: it grants a role for each",
    )
    jobs.add_argument(
        "--adopt",
        action="append",
        default=[],
        choices=(*OPERATORS, "kueue"),
        help="run these kinds even if another operator for them seems to run; may be repeated",
    )
    jobs.add_argument(
        "--machines",
        choices=("none", "karpenter", "autoscaler"),
        default="none",
        help="what provisions nodes for whole gangs: karpenter (NodeClaims within the NodePools of "
        "the cluster) or autoscaler (ProvisioningRequests, configured by AdmissionChecks) "
        "(default: none)",
    )
    jobs.add_argument(
        "--policy", type=Path, metavar="FILE", help="a Policy or a Kueue Configuration"
    )
    records.add_argument(
        "--record",
        type=Path,
        metavar="DIR",
        help="record every decision in this folder, for `unisono replay`; the oldest are deleted",
    )
    records.add_argument(
        "--ledger",
        type=Path,
        metavar="FILE",
        help="record GPU usage in this file, for `unisono report --ledger FILE`",
    )
    records.add_argument(
        "--prometheus",
        type=url,
        metavar="URL",
        help="a Prometheus with GPU metrics, for the ledger and the web page (default: no GPU "
        "utilisation)",
    )
    records.add_argument(
        "--prometheus-token-file",
        type=Path,
        metavar="FILE",
        help="the bearer token for Prometheus; the file is read for each request",
    )
    records.add_argument(
        "--prometheus-ca",
        type=Path,
        metavar="FILE",
        help="the certificate authorities of Prometheus (default: those of the system)",
    )
    records.add_argument(
        "--grafana",
        type=url,
        metavar="URL",
        help="the address of a Grafana with our dashboards; the web page links to its panels",
    )
    cluster.add_argument(
        "--rate",
        type=_rate,
        default=300.0,
        metavar="N",
        help="the most API requests per second (default: 300)",
    )
    records.add_argument(
        "--log", choices=("json", "text"), default="json", help="log format (default: json)"
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Run until told to stop."""
    import uvloop

    from unisono.cli.connection import in_plain_words
    from unisono.control.scheduler.loop import not_kept
    from unisono.engine.cycle import plan
    from unisono.kube.kubeconfig import SERVICE_ACCOUNT, find_access
    from unisono.runtime.clock import RealClock
    from unisono.runtime.cluster.replica import Choices, control_cluster
    from unisono.runtime.log import Journal
    from unisono.runtime.preload import preload
    from unisono.runtime.recording import Refusals, recorder

    preload()
    with in_plain_words():
        settings, web = _settings(arguments.policy), _web(arguments)
        record: Path | None = arguments.record
        access = find_access(path=arguments.kubeconfig, context=arguments.context)
        is_in_pod = access.login.token_file == SERVICE_ACCOUNT / "token"
        namespace = arguments.namespace or (access.namespace if is_in_pod else HOME)
        choices = Choices(
            access=access,
            namespace=namespace,
            listen=arguments.listen,
            webhook=arguments.webhook,
            visibility=arguments.visibility,
            names=_names(namespace, arguments.host),
            web=web,
            operators=None if arguments.operators is None else tuple(arguments.operators),
            adopted=frozenset(arguments.adopt),
            settings=settings,
            rate=arguments.rate,
            decides=plan if record is None else recorder(record).plan,
            keep_refusal=not_kept if record is None else Refusals(record / "refusals"),
            machines=arguments.machines,
            ledger=arguments.ledger,
            prometheus=_prometheus(arguments),
            grafana=_grafana(arguments),
        )
        clock = RealClock()
        journal = Journal(sys.stderr, clock.now, arguments.log)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(control_cluster(choices, clock, journal))
    return 0


def _settings(path: Path | None) -> Settings | None:
    from unisono.runtime.policy_file import policy_of

    return None if path is None else policy_of(str(path)).settings


def _web(arguments: argparse.Namespace) -> WebChoices | None:
    """Return how the page is served; refuse to have tokens cross a network in the clear."""
    from unisono.engine.model.errors import InvalidManifest
    from unisono.kube.tls import ServerCertificate
    from unisono.net.allowed_hosts import is_loopback

    chain, key = arguments.web_tls_cert, arguments.web_tls_key
    if arguments.web is None:
        if chain or key or arguments.web_behind_proxy:
            raise InvalidManifest("--web", "is missing; say where the page is: --web HOST:PORT")
        return None
    if (chain is None) != (key is None):
        lacking = "--web-tls-key" if key is None else "--web-tls-cert"
        raise InvalidManifest(lacking, "is missing; a certificate and its key go together")
    host, port = arguments.web
    if chain is None and not arguments.web_behind_proxy and not is_loopback(host):
        raise InvalidManifest(
            "--web",
            f"{host}:{port} would have tokens cross the network in the clear; give --web-tls-cert "
            "and --web-tls-key, or say --web-behind-proxy if only a proxy with TLS can reach it",
        )
    from unisono.runtime.cluster.web import WebChoices  # only if there is a page

    certificate = None if chain is None else ServerCertificate(chain, key)
    return WebChoices(listen=(host, port), certificate=certificate)


def _names(namespace: str, given: Sequence[str]) -> Sequence[str]:
    """Return the names of our Services, as other pods know them, and those that were told.

    >>> _names("home", ["gpu.example"])[:4]
    ('unisono', 'unisono.home', 'unisono.home.svc', 'unisono.home.svc.cluster.local')
    """
    endings = ("", f".{namespace}", f".{namespace}.svc", f".{namespace}.svc.cluster.local")
    services = ("unisono", "unisono-web")
    return (*(f"{one}{ending}" for one in services for ending in endings), *given)


def _prometheus(arguments: argparse.Namespace) -> Prometheus | None:
    from unisono.engine.model.errors import InvalidManifest
    from unisono.monitor.prometheus import Prometheus

    if arguments.prometheus is None:
        return None
    if arguments.ledger is None and arguments.web is None:
        message = "is for the ledger and the web page; say --ledger FILE or --web HOST:PORT"
        raise InvalidManifest("--prometheus", message)
    token_file, authority = arguments.prometheus_token_file, arguments.prometheus_ca
    try:
        return Prometheus(arguments.prometheus, token_file=token_file, authority=authority)
    except OSError as error:
        raise InvalidManifest("--prometheus-ca", f"{authority}: {error}") from error


def _grafana(arguments: argparse.Namespace) -> str:
    from unisono.engine.model.errors import InvalidManifest

    if arguments.grafana is not None and arguments.web is None:
        raise InvalidManifest("--grafana", "is for the web page; say --web HOST:PORT")
    return arguments.grafana or ""


def address(text: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    host, colon, port = text.rpartition(":")
    number = whole_number(port, _LAST_PORT)
    if not colon or number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]") or "0.0.0.0", number


def operators(text: str) -> tuple[str, ...]:
    """Read a list of operators."""
    if text in ("all", "none"):
        return OPERATORS if text == "all" else ()
    chosen = tuple(text.split(","))
    unknown = [one for one in chosen if one not in OPERATORS]
    if unknown:
        there = ", ".join(OPERATORS)
        raise argparse.ArgumentTypeError(f"there is no operator {unknown[0]!r}; there are {there}")
    return chosen


def _rate(text: str) -> float:
    rate = float(text)
    if not 1 <= rate <= _MOST_RATE:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {_MOST_RATE}")
    return rate
