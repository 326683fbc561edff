"""The client of every controller: any Kubernetes API, real or embedded.

    kubeconfig, credentials, tls         where the cluster is and how to sign in
    transport, priority_lanes, calls     how a request gets to an API: limits, retries
    client, pods                         objects as dictionaries: read, write, bind, evict
    reflector, cache, informer           a copy of a kind that follows it; the first two are pure
    workqueue                            which keys need work
    leader_election                      the rules (pure), and taking part
    events                               which events are written (pure), and writing them

Time, randomness and identifiers are always handed in. The pure parts can be driven by hand, one
step after the other; the loops around them are short.
"""

from unisono.kube.cache import Delta, Store
from unisono.kube.client import Client
from unisono.kube.clock import Clock
from unisono.kube.connect import client_over, connected
from unisono.kube.events import Recorder
from unisono.kube.form import Dicts, Form, Json, Key, Meta, Structs
from unisono.kube.informer import Caches, Informer
from unisono.kube.kubeconfig import Access, find_access
from unisono.kube.leader_election import Candidate
from unisono.kube.mapping import Kind
from unisono.kube.pods import bind, evict, log, scale
from unisono.kube.priority_lanes import Lane, Lanes
from unisono.kube.transport import Answer, Stream, Transport
from unisono.kube.workqueue import Workers, WorkQueue

__all__ = [
    "Access",
    "Answer",
    "Caches",
    "Candidate",
    "Client",
    "Clock",
    "Delta",
    "Dicts",
    "Form",
    "Informer",
    "Json",
    "Key",
    "Kind",
    "Lane",
    "Lanes",
    "Meta",
    "Recorder",
    "Store",
    "Stream",
    "Structs",
    "Transport",
    "WorkQueue",
    "Workers",
    "bind",
    "client_over",
    "connected",
    "evict",
    "find_access",
    "log",
    "scale",
]
