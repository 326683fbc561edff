"""Mails and webhooks of replicas on a real cluster, with the rights that the manifests give."""

from __future__ import annotations

import signal

import pytest

from tests.notify.test_delivery import Mailroom, mail_server, receiver
from tests.real.cluster import kubectl, put, until
from tests.real.stage import Stage, gang
from unisono.kube.form import Json

pytestmark = [pytest.mark.real, pytest.mark.slow]

HOME = "unisono-system"
ACCOUNT = f"--as=system:serviceaccount:{HOME}:unisono"


def policy(port: int, namespace: str) -> Json:
    """Return a policy that sends mails, and calls a webhook whose address is a secret."""
    mail = {
        "server": "127.0.0.1",
        "port": port,
        "from": "unisono@example.org",
        "tls": "none",
        "recipients": ["example.org"],
    }
    rule = {
        "match": {"namespaces": [namespace]},
        "events": ["end"],
        "webhook": {"form": "slack", "urlFrom": {"key": "slack"}},
    }
    return {
        "apiVersion": "unisono.dev/v1",
        "kind": "Policy",
        "metadata": {"name": "unisono"},
        "notifications": {"mail": mail, "rules": [rule]},
    }


def secret(name: str, **data: str) -> Json:
    """Return a Secret of the installation."""
    metadata = {"name": name, "namespace": HOME}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}


def told(mailroom: Mailroom) -> list[str]:
    """Return what was mailed so far."""
    return [str(one["Subject"]) for one in mailroom.mails]


def test_a_new_leader_tells_what_the_old_one_did_not(stage: Stage) -> None:
    mailroom = Mailroom()
    begun = f"Job {stage.namespace}/told has begun"
    ended = f"Job {stage.namespace}/told has ended"
    with mail_server(mailroom) as port, receiver() as hooks:
        put(
            stage.plane,
            policy(port, stage.namespace),
            secret("unisono-notifications", slack=f"{hooks.url}/services/x"),
            secret("other", key="value"),
        )
        first = stage.replica()
        first.until_told("leading")
        second = stage.replica()
        second.until_told("all is read")
        made = gang("told", stage.namespace, 2, 300)
        made["metadata"]["annotations"] = {
            "unisono.dev/notify": "begin,end",
            "unisono.dev/notify-to": "ada@example.org",
        }
        stage.jobs["told"] = 2
        put(stage.plane, made)
        until("a mail says that it has begun", lambda: told(mailroom) == [begun])
        first.process.send_signal(signal.SIGKILL)
        stage.faults["leaders killed"] = 1
        second.until_told("leading")
        until("a mail says that it has ended", lambda: told(mailroom) == [begun, ended])
        until("the webhook was called", lambda: len(hooks.got) == 1)
    ((path, document),) = hooks.got
    assert path == "/services/x"
    assert document["text"].startswith(f"*{ended}*")
    stage.judge()
    may_get = ("auth", "can-i", "get", "-n", HOME, ACCOUNT)
    assert kubectl(stage.plane, *may_get, "secret/unisono-notifications").strip() == "yes"
