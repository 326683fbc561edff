"""What is said about documents: problems that stop a decision, warnings that do not.

`Notes` is the collector that is handed to the readers of one document; it knows the file and the
number of the document, so readers only name a field path.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

# Keys and values of a manifest can be megabytes long; people read no more than this of them.
_MAX_LENGTH = 1000

REFERENCE = "ReferenceNotFound"
# The stable name of everything that deserves a warning, and what it means.
WARNING_CODES = {
    "CohortCycle": "Cohorts are each other's ancestors; queues below them admit nothing.",
    "DevicesNotAllocated": "Pods ask for devices by dynamic resource allocation, and wait.",
    "EmptySpec": "A job says nothing about itself; the smallest possible one is assumed.",
    "FieldIgnored": "A field is known, but has no effect here.",
    "KindIgnored": "No decision depends on objects of this kind.",
    "LimitWithoutCohort": "A borrowing or lending limit without a cohort to share with.",
    "MissingNamespaceSelector": "A ClusterQueue does not say which namespaces it takes.",
    "NamespaceIgnored": "An object of a kind without namespaces names one.",
    "NetworkTopologyWithoutTier": "A hard network topology names no tier; taken as a wish.",
    "NodeSelectorAlias": "A ResourceFlavor says nodeSelector for nodeLabels.",
    "NotAKubernetesObject": "A document has neither apiVersion nor kind.",
    "NotManaged": "A job is in no queue, or its namespace is not managed.",
    "OverlayNotReady": "A NodeOverlay says something that cannot be.",
    "PoolNotReady": "A NodePool asks for something that cannot be.",
    "PooledGroup": "A resource group gives one quota for all of its flavors.",
    "PooledQuotaNotShared": "Queues of one cohort count the same flavors on different accounts.",
    REFERENCE: "An object names another one that is not there.",
    "ResourceOrder": "A flavor lists its resources in another order than its group.",
    "RestartPolicyMissing": "A pod template has no restart policy that suits its job.",
    "TierNotFound": "A network topology names a tier that no HyperNode has.",
    "UnmeteredResource": "A flavor has no quota for a resource that its group covers.",
    "VolcanoQueueNotFound": "A Volcano job or group names a queue that does not exist.",
    "WeightRounded": "A fair sharing weight is finer than a thousandth.",
    "WorkloadPriorityClassNotFound": "A priority class is named that does not exist.",
}


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line about one document: where, and what. Document 0 means the whole file."""

    file: str
    document: int
    path: str
    message: str
    code: str = ""  # only warnings have one

    def line(self) -> str:
        """Return it as one line for people."""
        place = f"{self.file}: document {self.document}" if self.document else self.file
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


@dataclass(slots=True)
class Notes:
    """Collects findings about one document."""

    file: str
    document: int
    strict: bool = False
    problems: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    prefix: str = ""  # where the object stands in its document: `items[3]` in a List

    def problem(self, path: str, message: str) -> None:
        """Note something that the user must mend before there can be a decision."""
        self.problems.append(self._finding(path, message))

    def missing(self, path: str, message: str) -> None:
        """Note that an object cannot be worked on before another one is there.

        Where the others go on without it (a dump of a cluster), it is only a warning.
        """
        self.problems.append(self._finding(path, message, REFERENCE))

    def warn(self, code: str, path: str, message: str) -> None:
        """Note something that works, but perhaps not as its author thinks."""
        self.warnings.append(self._finding(path, message, code))

    def lenient(self, code: str, path: str, message: str) -> None:
        """Note a reading that Kueue refuses: a warning, or a problem in strict mode."""
        if self.strict:
            self.problem(path, message)
        else:
            self.warn(code, path, message)

    def misconfigured(self, problem: str) -> None:
        """Note why a workload can never run as written; only that workload suffers."""
        self.faults.append(problem)

    def _finding(self, path: str, message: str, code: str = "") -> Finding:
        place = ".".join(part for part in (self.prefix, path) if part)
        return Finding(
            file=self.file,
            document=self.document,
            path=_one_line(place),
            message=_one_line(message),
            code=code,
        )


def _one_line(text: str) -> str:
    """Make a text that may quote anything fit for one line of a terminal."""
    if len(text) > _MAX_LENGTH:
        half = _MAX_LENGTH // 2
        text = f"{text[:half]} … {text[-half:]}"
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
