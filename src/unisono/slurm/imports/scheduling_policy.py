"""The SchedulingPolicy of an import: weights, accounts, QOS and partitions, with their limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from unisono.kinds.digits import whole_number
from unisono.slurm.conf import Conf, Record, minutes_of
from unisono.slurm.imports.report import Report
from unisono.slurm.imports.sacctmgr import ROOT, Dump, Member
from unisono.slurm.labels import partition_label

Json = dict[str, object]

# What sacctmgr calls it (dump or table) → our field. TRES lists, counts, durations.
_TRES = {
    "grptres": "groupTres",
    "grptresmins": "groupTresMinutes",
    "grptresrunmins": "groupTresRunMinutes",
    "maxtresperjob": "tresPerJob",
    "maxtres": "tresPerJob",
    "maxtrespernode": "tresPerNode",
    "maxtresminsperjob": "tresMinutesPerJob",
    "maxtresmins": "tresMinutesPerJob",
    "maxtresperuser": "tresPerUser",
    "maxtrespu": "tresPerUser",
    "maxtresperaccount": "tresPerAccount",
    "maxtrespa": "tresPerAccount",
    "maxtresrunminsperuser": "tresRunMinutesPerUser",
    "maxtresrunminspu": "tresRunMinutesPerUser",
    "maxtresrunminsperaccount": "tresRunMinutesPerAccount",
    "maxtresrunminspa": "tresRunMinutesPerAccount",
    "mintresperjob": "leastTresPerJob",
    "mintres": "leastTresPerJob",
}
_COUNTS = {
    "grpjobs": "groupJobs",
    "grpjobsaccrue": "groupJobsAccruing",
    "grpsubmitjobs": "groupSubmitted",
    "grpsubmit": "groupSubmitted",
    "maxjobs": "jobsPerUser",
    "maxjobsperuser": "jobsPerUser",
    "maxjobspu": "jobsPerUser",
    "maxjobsaccrue": "jobsAccruingPerUser",
    "maxjobsaccrueperuser": "jobsAccruingPerUser",
    "maxjobsaccruepu": "jobsAccruingPerUser",
    "maxsubmitjobs": "submittedPerUser",
    "maxsubmitjobsperuser": "submittedPerUser",
    "maxsubmitpu": "submittedPerUser",
    "maxjobsperaccount": "jobsPerAccount",
    "maxjobspa": "jobsPerAccount",
    "maxjobsaccrueperaccount": "jobsAccruingPerAccount",
    "maxjobsaccruepa": "jobsAccruingPerAccount",
    "maxsubmitjobsperaccount": "submittedPerAccount",
    "maxsubmitpa": "submittedPerAccount",
}
_TIMES = {
    "maxwalldurationperjob": "wallPerJob",
    "maxwall": "wallPerJob",
    "maxwalldurationperjobmins": "wallPerJob",
    "grpwall": "groupWall",
}
KEYS = frozenset({*_TRES, *_COUNTS, *_TIMES})


def limits_of(keys: Mapping[str, str], owner: str, report: Report) -> Json:
    """Return the limits among the keys of an account, a user or a QOS."""
    made: Json = {}
    for key, value in keys.items():
        if key in _TRES:
            amounts = tres_of(value, f"{key} of {owner}", report)
            if amounts:
                made[_TRES[key]] = amounts
        elif key in _COUNTS and (count := whole_number(value)) is not None:
            made[_COUNTS[key]] = count
        elif key in _TIMES:
            minutes = minutes_of(value)
            if minutes is not None:
                made[_TIMES[key]] = f"{minutes}m"
    for field, amount in made.items():
        report.mapped(f"{owner} {field}", str(amount))
    return made


def tres_of(text: str, what: str, report: Report) -> dict[str, str]:
    """Return amounts of TRES as a policy writes them; those of a type of device are left out.

    >>> tres_of("cpu=32,mem=100G,gres/gpu=4", "x", Report())
    {'cpu': '32', 'mem': '100Gi', 'gres/gpu': '4'}
    """
    made: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, amount = part.partition("=")
        name = name.strip().lower()
        if ":" in name:
            report.dropped(f"{what}: {part}", "device types have a flavor with its own quota")
        elif name in ("cpu", "mem", "node", "billing") or name.startswith(("gres/", "license/")):
            if amount not in ("", "-1"):
                made[name] = _memory(amount) if name == "mem" else amount
        else:
            report.dropped(f"{what}: {part}", "is not counted here")
    return made


def _memory(amount: str) -> str:
    """Return an amount of memory; Slurm counts MiB, or says K, M, G, T."""
    last = amount[-1:].upper()
    return f"{amount[:-1]}{last}i" if last in "KMGT" else f"{amount}Mi"


_WEIGHTS = {
    "priorityweightage": "age",
    "priorityweightassoc": "association",
    "priorityweightfairshare": "fairShare",
    "priorityweightjobsize": "jobSize",
    "priorityweightpartition": "partition",
    "priorityweightqos": "qos",
}
_RAW = {
    "NO_NORMAL_ASSOC": ("association",),
    "NO_NORMAL_PART": ("partition",),
    "NO_NORMAL_QOS": ("qos",),
    "NO_NORMAL_TRES": ("tres",),
    "NO_NORMAL_ALL": ("association", "partition", "qos", "tres"),
}
_RESETS = ("never", "daily", "weekly", "monthly", "quarterly", "yearly")
_QOS_FLAGS = {
    "denyonlimit": "denyOnLimit",
    "nodecay": "noDecay",
    "overpartqos": "overPartition",
    "partitiontimelimit": "ignoresPartitionTime",
    "partitionmaxnodes": "ignoresPartitionNodes",
    "partitionminnodes": "ignoresPartitionNodes",
}
# What of an association is no limit and has its own place, or says nothing about turns.
_PLAIN = frozenset(
    {
        "description",
        "organization",
        "fairshare",
        "defaultaccount",
        "adminlevel",
        "coordinator",
        "qos",
        "defaultqos",
        "priority",
        "classification",
    }
)


def scheduling_policy(
    conf: Conf, dump: Dump | None, qos: Mapping[str, Mapping[str, str]], report: Report
) -> Json:
    """Return the document."""
    spec: Json = {"weights": _weights(conf, report), **_priority(conf, report)}
    known = _qos_names(conf, dump, qos)
    if dump is not None:
        spec["accounts"] = _accounts(dump, report)
        enforced = conf.flags("AccountingStorageEnforce")
        spec["knownUsersOnly"] = any(one.lower() != "none" for one in enforced)
        spec["operators"] = _operators(dump)
    if known:
        spec["qos"] = [_qos(name, qos.get(name, {}), report) for name in sorted(known)]
        if "normal" in known:
            spec["defaultQos"] = "normal"
    spec["partitions"] = [_partition(one, dump, known, report) for one in conf.partitions]
    return {
        "apiVersion": "unisono.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": (conf.text("ClusterName") or "slurm").lower()},
        "spec": spec,
    }


def _weights(conf: Conf, report: Report) -> Json:
    made: Json = {}
    for key, field in _WEIGHTS.items():
        if key in conf.settings:
            made[field] = int(conf.text(key) or 0)
            report.mapped(conf.settings[key].name, f"weights.{field}", conf.settings[key].place)
    if "priorityweighttres" in conf.settings:
        tres: dict[str, float] = {}
        for name, value in conf.parameters("PriorityWeightTRES").items():
            if ":" in name:
                report.dropped(f"PriorityWeightTRES {name}", "device types have no weights")
            else:
                tres[name] = float(value)
        made["tres"] = tres
        place = conf.settings["priorityweighttres"].place
        report.mapped("PriorityWeightTRES", "weights.tres", place)
    return made


def _priority(conf: Conf, report: Report) -> Json:
    made: Json = {}
    if conf.text("PriorityType").endswith("basic"):
        made["order"] = "priority"
        report.approximated("PriorityType", "order: priority; first come, first served")
    for key, field in (("prioritymaxage", "maxAge"), ("prioritydecayhalflife", "halfLife")):
        if key in conf.settings:
            minutes = minutes_of(conf.text(key)) or 0
            made[field] = f"{minutes}m"
            report.mapped(conf.settings[key].name, f"{field}: {minutes}m", conf.settings[key].place)
    if "prioritycalcperiod" in conf.settings:
        made["calcPeriod"] = f"{minutes_of(conf.text('prioritycalcperiod')) or 5}m"
        report.approximated("PriorityCalcPeriod", "calcPeriod: counts with compat: slurm alone")
    reset = conf.text("PriorityUsageResetPeriod", "NONE").lower()
    if reset in _RESETS:
        made["reset"] = reset
        report.mapped("PriorityUsageResetPeriod", f"reset: {reset}")
    elif reset == "now":
        report.dropped("PriorityUsageResetPeriod", "usage begins at 0 here anyway")
    if conf.text("PriorityFavorSmall").upper() == "YES":
        made["favorSmall"] = True
        report.mapped("PriorityFavorSmall", "favorSmall: true")
    if "fairsharedampeningfactor" in conf.settings:
        made["dampening"] = int(conf.text("FairShareDampeningFactor"))
        report.mapped("FairShareDampeningFactor", "dampening")
    made |= _flags(conf, report)
    return made


def _flags(conf: Conf, report: Report) -> Json:
    made: Json = {}
    raw: list[str] = []
    for flag in map(str.upper, conf.flags("PriorityFlags")):
        match flag:
            case "ACCRUE_ALWAYS":
                made["ageFromSubmission"] = True
            case "NO_FAIR_TREE":
                made.setdefault("fairShare", "classic")
            case "DEPTH_OBLIVIOUS":
                made["fairShare"] = "depth-oblivious"
            case "SMALL_RELATIVE_TO_TIME":
                made["smallRelativeToTime"] = True
            case "MAX_TRES":
                made["billing"] = "max"
            case "MAX_TRES_GRES":
                made["billing"] = "max-gres"
            case _ if flag in _RAW:
                raw += [one for one in _RAW[flag] if one not in raw]
            case "FAIR_TREE":
                pass
            case _:
                report.dropped(f"PriorityFlags={flag}", "priorities are always computed on demand")
                continue
        report.mapped(f"PriorityFlags={flag}", "the same")
    if raw:
        made["raw"] = raw
    return made


def _accounts(dump: Dump, report: Report) -> list[Json]:
    made: list[Json] = []
    allowed: dict[str, Sequence[str]] = {}  # of accounts; parents come first
    memberships = Counter(user.name for block in dump.accounts.values() for user in block.users)
    for block in dump.accounts.values():
        above = allowed.get(block.parent, ())
        own = allowed[block.name] = _allowed(block.keys.get("qos", ""), above)
        if block.name == ROOT and not block.users and not set(block.keys) & KEYS:
            continue
        account: Json = {"name": block.name}
        if block.name != ROOT:
            account["parent"] = block.parent
        account |= _association(block.keys, f"account {block.name}", above, report)
        users = [
            {
                "name": user.name,
                **_home(user, block.name, memberships),
                **_association(user.keys, f"user {user.name}", own, report),
            }
            for user in block.users
        ]
        if users:
            account["users"] = users
        made.append(account)
        report.mapped(
            f"account {block.name}",
            f"{len(users)} user{'s' * (len(users) != 1)} below {block.parent}",
        )
    return made


def _home(user: Member, account: str, memberships: Counter[str]) -> Json:
    """Mark the default account of a user with several; a single one needs no mark."""
    is_default = user.keys.get("defaultaccount") == account and memberships[user.name] > 1
    return {"default": True} if is_default else {}


def _association(keys: Mapping[str, str], owner: str, above: Sequence[str], report: Report) -> Json:
    made: Json = {}
    share = keys.get("fairshare", "")
    if (shares := whole_number(share)) is not None:
        made["shares"] = shares
    elif share:
        made["shares"] = "parent"
    if (priority := whole_number(keys.get("priority"))) is not None:
        made["priority"] = priority
    allowed = _allowed(keys.get("qos", ""), above)
    if allowed and keys.get("qos"):
        made["qos"] = allowed
    if keys.get("defaultqos"):
        made["defaultQos"] = keys["defaultqos"]
    limits = limits_of({key: value for key, value in keys.items() if key in KEYS}, owner, report)
    if limits:
        made["limits"] = limits
    for key in keys.keys() - KEYS - _PLAIN:
        report.dropped(f"{key} of {owner}", "has no counterpart")
    return made


def _allowed(text: str, above: Sequence[str]) -> list[str]:
    """Return the QOS that may be used: a list, or what is added to and taken from those above.

    >>> _allowed("+high,-low", ["low", "normal"]), _allowed("high", ["low"]), _allowed("", ["low"])
    (['normal', 'high'], ['high'], ['low'])
    """
    parts = [one.strip() for one in text.split(",") if one.strip()]
    is_delta = all(part[0] in "+-" for part in parts)
    found = list(above) if is_delta else []
    for part in parts:
        name = part.lstrip("+-")
        if part.startswith("-"):
            found = [one for one in found if one != name]
        elif name not in found:
            found.append(name)
    return found


def _operators(dump: Dump) -> list[str]:
    users = (user for block in dump.accounts.values() for user in block.users)
    levels = {
        user.name
        for user in users
        if user.keys.get("adminlevel", "").lower() in ("operator", "administrator")
    }
    return [ROOT, *sorted(levels - {ROOT})]


def _qos_names(
    conf: Conf, dump: Dump | None, qos: Mapping[str, Mapping[str, str]]
) -> frozenset[str]:
    """Return every QOS that is named."""
    found = set(qos)
    for part in conf.partitions:
        for key in ("qos", "allowqos", "denyqos"):
            found |= {one for one in part.text(key).split(",") if one and one.upper() != "ALL"}
    for block in dump.accounts.values() if dump is not None else ():
        for keys in (block.keys, *(user.keys for user in block.users)):
            listed = (*keys.get("qos", "").split(","), keys.get("defaultqos", ""))
            found |= {one.strip().lstrip("+-") for one in listed if one.strip()}
    return frozenset(found)


def _qos(name: str, keys: Mapping[str, str], report: Report) -> Json:
    made: Json = {"name": name}
    if not keys:
        report.approximated(f"QOS {name}", "is named, but not described; give its table with --qos")
        return made
    if (priority := whole_number(keys.get("priority"))) is not None:
        made["priority"] = priority
    if keys.get("usagefactor"):
        made["usageFactor"] = float(keys["usagefactor"])
    for flag in filter(None, keys.get("flags", "").split(",")):
        field = _QOS_FLAGS.get(flag.strip().lower())
        if field is None:
            report.dropped(f"flag {flag} of QOS {name}", "has no counterpart")
        else:
            made[field] = True
    if keys.get("preempt"):
        report.dropped(f"Preempt of QOS {name}", "preemption follows priority classes and queues")
    limits = limits_of(
        {key: one for key, one in keys.items() if key in KEYS}, f"QOS {name}", report
    )
    if limits:
        made["limits"] = limits
    report.mapped(f"QOS {name}", f"priority {made.get('priority', 0)}")
    return made


def _partition(one: Record, dump: Dump | None, known: frozenset[str], report: Report) -> Json:
    made: Json = {"name": one.name, "nodeLabels": {partition_label(one.name): "true"}}
    what = f"partition {one.name}"
    if one.text("default").upper() == "YES":
        made["default"] = True
    state = one.text("state", "UP").upper()
    made["state"] = state if state in ("UP", "DOWN", "DRAIN", "INACTIVE") else "UP"
    for key, field in (("prioritytier", "tier"), ("priorityjobfactor", "jobFactor")):
        if (number := whole_number(one.text(key, one.text("priority")))) is not None:
            made[field] = number
    minutes = minutes_of(one.text("maxtime"))
    if minutes is not None:
        made["maxTime"] = f"{minutes}m"
    for key, field in (("minnodes", "minNodes"), ("maxnodes", "maxNodes")):
        if (count := whole_number(one.text(key))) is not None:
            made[field] = count
    if one.text("qos"):
        made["qos"] = one.text("qos")
    accounts = frozenset(dump.accounts) if dump is not None else None
    for key, field, names in (
        ("allowaccounts", "allowAccounts", accounts),
        ("denyaccounts", "denyAccounts", accounts),
        ("allowqos", "allowQos", known),
        ("denyqos", "denyQos", known),
    ):
        listed = [part for part in one.text(key).split(",") if part and part.upper() != "ALL"]
        if listed and names is None:
            report.dropped(f"{key} of {what}", "there are no accounts without --assoc")
        elif listed:
            made[field] = [name for name in listed if name in (names or ())]
    weights = one.text("tresbillingweights")
    if weights:
        made["prices"] = _prices(weights, what, report)
    caps = {
        tres: one.text(key)
        for key, tres in (("maxcpus", "cpu"), ("maxgpus", "gres/gpu"))
        if whole_number(one.text(key)) is not None
    }
    if caps:
        made["limits"] = {"tresPerJob": caps}
        legal = ",".join(f"{tres}={amount}" for tres, amount in caps.items())
        keys = " and ".join(key for key in ("MaxCPUs", "MaxGPUs") if one.text(key))
        report.warn(
            f"{one.at.place}: {keys} of {what} {'are no keys' if ' and ' in keys else 'is no key'}"
            f" of Slurm, which refuses them; there it is a QOS with MaxTRESPerJob={legal},"
            f" named by QOS= of the partition; taken as limits of a job"
        )
    report.mapped(what, f"LocalQueue {one.name}, tier {made.get('tier', 1)}", one.at.place)
    return made


def _prices(text: str, what: str, report: Report) -> dict[str, float]:
    """Return what a core, a GiB and a device cost; Slurm's memory may have a unit of its own."""
    made: dict[str, float] = {}
    per_gib = {"K": 1024.0 * 1024.0, "M": 1024.0, "G": 1.0, "T": 1 / 1024.0}
    for part in filter(None, text.split(",")):
        name, _, weight = part.partition("=")
        name = name.strip().lower()
        if ":" in name:
            report.dropped(f"price {part} of {what}", "device types have no price of their own")
        elif name == "mem":
            unit = weight[-1:].upper()
            number = float(weight[:-1] if unit in per_gib else weight)
            made[name] = number * per_gib.get(unit, 1024.0)
        else:
            made[name] = float(weight)
    return made
