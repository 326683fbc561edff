"""The client of every controller: any Kubernetes API, real or embedded.

    access           where the cluster is and how to sign in: kubeconfig, credentials, TLS
    requests         transport, priority lanes, concurrency limit, retries
    client, pods     objects as dictionaries: read, write, bind, evict
    cache            reflector and store (pure), and the informer that feeds them
    workqueue        which keys need work
    leader_election  the rules (pure), and taking part
    events           which events are written (pure), and writing them

Time, randomness and identifiers are always handed in. The pure parts can be driven by hand, one
step after the other; the loops around them are short.
"""

from unisono.kube.access.config import Access, find_access
from unisono.kube.cache.informer import Caches, Informer
from unisono.kube.cache.store import Delta, Store
from unisono.kube.client import Client
from unisono.kube.clock import Clock
from unisono.kube.connect import client_over, connected
from unisono.kube.events import Recorder
from unisono.kube.form import Dicts, Form, Json, Key, Meta, Structs
from unisono.kube.leader_election import Candidate
from unisono.kube.mapping import Kind
from unisono.kube.pods import bind, evict, log, scale
from unisono.kube.requests.priority_lanes import Lane, Lanes
from unisono.kube.requests.transport import Answer, Stream, Transport
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
