"""The report with the columns of FOCUS 1.0, for tools that charge teams back.

A line for each job, and one for the GPUs of each sort that no job had; a team is the sub-account.
Costs are those of the nodes' prices: billed, effective, contracted and list cost are the same.
Columns of our own begin with `x_`, as the specification says.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime

from unisono.monitor.report.formats import exact
from unisono.monitor.report.model import Capacity, Job, Report

_UNIT = "GPU-Hours"
_OVERHEAD = "unallocated"
_SPOT = "spot"

COLUMNS = (
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency"),
    *("BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeClass"),
    *("ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart"),
    *("ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice"),
    *("EffectiveCost", "InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory"),
    *("PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "RegionId"),
    *("RegionName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory"),
    *("ServiceName", "SkuId", "SkuPriceId", "SubAccountId", "SubAccountName", "Tags"),
    *("x_WastedCost", "x_BusyGpuHours", "x_IdleGpuHours", "x_LostGpuHours"),
)


def focus(report: Report, cluster: str) -> str:
    """Write it as CSV; the costs of all lines are the total of the report."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    about = {
        "BillingAccountId": cluster,
        "BillingAccountName": cluster,
        "BillingCurrency": "USD",
        **_periods(report),
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "InvoiceIssuerName": cluster,
        "ProviderName": cluster,
        "PublisherName": cluster,
        "ServiceCategory": "Compute",
        "ServiceName": "GPU cluster",
    }
    for line in (*map(_of_job, report.jobs), *_overheads(report)):
        writer.writerow({**about, **line})
    return out.getvalue()


def _periods(report: Report) -> dict[str, str]:
    """Return the period, and the month in which it begins, which it is billed with."""
    first = datetime.fromtimestamp(report.since, UTC).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    year, month = (first.year + 1, 1) if first.month == 12 else (first.year, first.month + 1)
    return {
        "BillingPeriodStart": _time(first),
        "BillingPeriodEnd": _time(first.replace(year=year, month=month)),
        "ChargePeriodStart": _time(datetime.fromtimestamp(report.since, UTC)),
        "ChargePeriodEnd": _time(datetime.fromtimestamp(report.until, UTC)),
    }


def _of_job(one: Job) -> dict[str, str]:
    amounts = one.amounts
    name = f"{one.namespace}/{one.name}"
    tags = {"namespace": one.namespace, "queue": one.queue, "user": one.user, "team": one.team}
    return {
        **_charge(amounts.allocated, amounts.cost_cents, one.model, one.capacity_type),
        "ChargeDescription": f"{one.kind} {name} of {one.user} in queue {one.queue}",
        "ResourceId": f"{one.kind}/{name}",
        "ResourceName": name,
        "ResourceType": one.kind,
        "SubAccountId": one.team,
        "SubAccountName": one.team,
        "Tags": json.dumps(tags),
        "x_WastedCost": f"{amounts.wasted_cents / 100:.2f}",
        "x_BusyGpuHours": exact(amounts.busy),
        "x_IdleGpuHours": exact(amounts.idle),
        "x_LostGpuHours": exact(amounts.lost),
    }


def _overheads(report: Report) -> Iterator[dict[str, str]]:
    """Yield what GPUs cost that no job had: free, held, or on a node that was down."""
    for one in report.capacity:
        hours = one.held + one.free + one.down
        if hours:
            yield {
                **_charge(hours, one.overhead_cents, one.model, one.capacity_type),
                "ChargeDescription": _said(one),
                "ResourceType": "Node",
                "SubAccountId": _OVERHEAD,
                "SubAccountName": _OVERHEAD,
                "Tags": json.dumps({}),
            }


def _said(one: Capacity) -> str:
    return f"{one.model or 'GPUs'} ({one.capacity_type}) that no job had: free, held or down"


def _charge(hours: float, cents: int, model: str, capacity_type: str) -> dict[str, str]:
    cost, quantity = f"{cents / 100:.2f}", exact(hours)
    price = f"{cents / 100 / hours:.6f}" if hours else ""
    sku = f"{model or 'gpu'}/{capacity_type}"
    return {
        "BilledCost": cost,
        "EffectiveCost": cost,
        "ContractedCost": cost,
        "ListCost": cost,
        "ContractedUnitPrice": price,
        "ListUnitPrice": price,
        "ConsumedQuantity": quantity,
        "ConsumedUnit": _UNIT,
        "PricingQuantity": quantity,
        "PricingUnit": _UNIT,
        "PricingCategory": "Dynamic" if capacity_type == _SPOT else "Standard",
        "SkuId": sku,
        "SkuPriceId": sku,
    }


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
