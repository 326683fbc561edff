"""The webhooks at work: a certificate that API servers trust, and a listener.

A standby answers like the leader.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from unisono.control.jobs.priority_class_rules import CLASS_RULES, read_rules
from unisono.control.names import CONFIG_MAP
from unisono.kinds.policy.schema import PriorityClassRule
from unisono.kube.client import Client
from unisono.kube.clock import Clock, guarded
from unisono.kube.errors import KubeError, NotFound
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.net.http.messages import Limits, Response
from unisono.net.http.pages import PageRequest, text
from unisono.runtime.log import Journal
from unisono.runtime.serving_certificate import ServingCertificate
from unisono.runtime.webhook.configuration import KINDS, NAME, WEBHOOK, host_names
from unisono.runtime.webhook.rules import PATHS, TENANCY, answer

# The largest object that an API server takes is 3 MiB; a review may hold an old and a new one.
_LIMITS = Limits(body_bytes=8 * 1024 * 1024, idle_seconds=75.0)


class Webhook:
    """One replica's webhooks."""

    def __init__(self, client: Client, namespace: str, clock: Clock, journal: Journal) -> None:
        """Prepare; nothing is read or served yet."""
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._journal = journal
        self._certificate = ServingCertificate(
            client,
            namespace,
            clock,
            journal,
            secret=WEBHOOK,
            what="webhooks",
            hosts=host_names(namespace),
            have_trusted=self._have_trusted,
        )
        self.is_trusted = self._certificate.is_trusted
        self.step = self._certificate.step

    async def serve(self, host: str, port: int) -> None:
        """Answer API servers for as long as this runs, as soon as they can trust us."""
        await guarded(
            self._certificate.keep(),
            self._certificate.serve(
                self._review, _LIMITS, host=host, port=port, option="--webhook"
            ),
        )

    async def _review(self, request: PageRequest) -> Response:
        if request.path not in PATHS:
            return text(404, f"there are {', '.join(PATHS)}\n")
        if request.method != "POST":
            return text(405, "only POST\n")
        try:
            review = json.loads(request.body)
            rules = await self.class_rules() if request.path == TENANCY else ()
            answered = answer(request.path, review, rules)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return text(400, f"not an AdmissionReview: {error!r}\n")
        except KubeError as error:  # rules that could not be read let nothing pass
            return text(503, f"the rules about classes: {error}\n")
        return Response(body=json.dumps(answered).encode())

    async def class_rules(self) -> Sequence[PriorityClassRule]:
        """Return the users of each priority class, as the leader has written them."""
        try:
            found = await self._client.get(CONFIG_MAP, CLASS_RULES, self._namespace)
        except NotFound:
            return ()
        return read_rules(found.get("data") or {})

    async def _have_trusted(self, trusted: str) -> None:
        for kind in KINDS.values():
            await self._have_one_trusted(kind, trusted)

    async def _have_one_trusted(self, kind: Kind, trusted: str) -> None:
        try:
            found = await self._client.get(kind, NAME)
        except NotFound:
            return  # the server has policies for that
        webhooks: list[Json] = found["webhooks"]
        if any(one["clientConfig"].get("caBundle") != trusted for one in webhooks):
            for one in webhooks:
                one["clientConfig"]["caBundle"] = trusted
            await self._client.update(found)
