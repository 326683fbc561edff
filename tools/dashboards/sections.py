"""Sections about ranks, GPU time, money, machines and broken devices."""

from __future__ import annotations

from tools.dashboards.build import Panel, Query, Section

_RATE = "[$__rate_interval]"


def _by(labels: str, counter: str) -> str:
    return f"sum by ({labels}) (rate({counter}{_RATE}))"


def _quantile(quantile: float, histogram: str) -> str:
    return f"histogram_quantile({quantile}, sum by (le) (rate({histogram}_bucket[1h])))"


def ranks(gang: str) -> Section:
    """Return what ranks of a gang tell of their steps."""
    legend = "rank {{rank}} {{pod}} on {{node}}"
    told = "Needs a program that writes step_seconds to UNISONO_PROGRESS_FILE."
    return Section(
        "Ranks",
        (
            Panel(
                "Step time",
                [Query(f"unisono_rank_step_seconds{{{gang}}}", legend)],
                unit="s",
                least=0,
                description=told,
            ),
            Panel(
                "Stragglers",
                [Query(f"unisono_straggler_score{{{gang}}}", legend)],
                description=f"Over 3 a rank is unusually slow in its gang. {told}",
            ),
        ),
    )


GPU_TIME = Section(
    "GPU time and cost",
    (
        Panel(
            "GPU time by state",
            [Query(_by("state", "unisono_gpu_capacity_seconds_total"), "{{state}}")],
            least=0,
        ),
        Panel(
            "GPU time by queue",
            [Query(_by("queue, state", "unisono_gpu_seconds_total"), "{{queue}} {{state}}")],
            least=0,
            description="Lost seconds were counted before, as busy or idle.",
        ),
        Panel(
            "Cost per hour, by queue",
            [
                Query(
                    f"{_by('queue, class', 'unisono_cost_usd_total')} * 3600", "{{queue}} {{class}}"
                )
            ],
            unit="currencyUSD",
            least=0,
            description="Overhead is the cost of GPUs that no pod held.",
        ),
    ),
)

MACHINES = Section(
    "Provisioning",
    (
        Panel(
            "Purchases per hour",
            [
                Query(
                    "sum by (nodepool, result) (increase(unisono_provision_plans_total[1h]))",
                    "{{nodepool}} {{result}}",
                )
            ],
            least=0,
        ),
        Panel(
            "Purchase until machines are ready",
            [
                Query(_quantile(quantile, "unisono_provision_duration_seconds"), name)
                for quantile, name in ((0.5, "median"), (0.95, "p95"))
            ],
            unit="s",
        ),
        Panel(
            "NodeClaims by state",
            [Query("unisono_nodeclaims > 0", "{{nodepool}} {{state}}")],
            least=0,
        ),
        Panel(
            "Unavailable instance types",
            [
                Query(
                    "unisono_offering_unavailable == 1",
                    "{{instance_type}} {{capacity_type}} in {{zone}}",
                )
            ],
        ),
    ),
)

BROKEN = Panel(
    "Broken GPUs",
    [
        Query(
            "count by (node, reason) (unisono_gpu_healthy == 0) or vector(0)", "{{node}} {{reason}}"
        )
    ],
    description="Their nodes get no new pods.",
)

LEAVING = Panel(
    "Preemption until quota is free",
    [
        Query(_quantile(quantile, "unisono_preemption_latency_seconds"), name)
        for quantile, name in ((0.5, "median"), (0.95, "p95"))
    ],
    unit="s",
)
