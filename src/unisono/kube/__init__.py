"""The client of every controller: any Kubernetes API, real or our own.

    config, credentials    where the cluster is and who we are there
    transport, http        how a request gets there
    lanes, calls           whose turn it is, and what is tried again
    client, pods           objects as dictionaries: read, write, bind, evict
    reflector, store       how a cache follows the API (pure)
    informer, caches       the loop that feeds it
    workqueue              which keys need work
    leader, candidate      who leads (pure), and taking part
    correlator, recorder   which events are written (pure), and writing them

Time, chance and identifiers are always handed in. The pure parts can be driven by hand, one step
after the other; the loops around them are short.
"""

from unisono.kube.caches import Caches
from unisono.kube.candidate import Candidate
from unisono.kube.client import Client
from unisono.kube.clock import Clock
from unisono.kube.config import Access, find_access
from unisono.kube.connect import client_over, connected
from unisono.kube.form import Dicts, Form, Json, Key, Meta, Structs
from unisono.kube.informer import Informer
from unisono.kube.lanes import Lane, Lanes
from unisono.kube.mapping import Kind
from unisono.kube.pods import bind, evict, log, scale
from unisono.kube.recorder import Recorder
from unisono.kube.store import Delta, Store
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
