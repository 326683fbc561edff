"""slurm.conf as values: settings, nodes and partitions, and where each of them stands.

Keys do not mind case. A line of `NodeName=` or `PartitionName=` is a record of several keys; one
named DEFAULT gives values to those after it. `#` begins a comment, a backslash at the end of a line
goes on in the next, `Include` reads another file. Slurm exits at an unknown key; this
reader continues and reports its line (spec slurm §3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from unisono.slurm.host_list import BadHostList, expand

# Files that include themselves have to end somewhere.
_DEEPEST = 8
_PAIR = re.compile(r"""([^\s=]+)\s*=\s*("[^"]*"|\S*)""")

# Reads a file that is included, by the name as written; None if there is none.
Include = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Value:
    """What is written somewhere."""

    text: str
    file: str
    line: int
    name: str = ""  # of a setting, as it is written

    @property
    def place(self) -> str:
        """Where, as people look it up."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Record:
    """A line with several keys, defaults filled in; keys are in lower case."""

    name: str
    keys: Mapping[str, Value]
    at: Value

    def text(self, key: str, default: str = "") -> str:
        """Return what it says about something."""
        found = self.keys.get(key.lower())
        return found.text if found is not None else default


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the reader of a file should know."""

    place: str
    what: str  # the key
    message: str


@dataclass(slots=True)
class Conf:
    """All of a configuration."""

    settings: dict[str, Value] = field(default_factory=dict)  # keys in lower case
    nodes: list[Record] = field(default_factory=list)
    partitions: list[Record] = field(default_factory=list)
    node_sets: list[Record] = field(default_factory=list)
    unknown: list[Remark] = field(default_factory=list)
    warnings: list[Remark] = field(default_factory=list)

    def text(self, key: str, default: str = "") -> str:
        """Return a setting."""
        found = self.settings.get(key.lower())
        return found.text if found is not None else default

    def flags(self, key: str) -> tuple[str, ...]:
        """Return a setting that is a list."""
        return tuple(part.strip() for part in self.text(key).split(",") if part.strip())

    def parameters(self, key: str) -> dict[str, str]:
        """Return a setting that is a list of `name=value`, names in lower case."""
        pairs = (part.partition("=") for part in self.flags(key))
        return {name.strip().lower(): value.strip() for name, _, value in pairs}


def read_conf(text: str, file: str = "slurm.conf", include: Include | None = None) -> Conf:
    """Return what a configuration says."""
    made = Conf()
    defaults: dict[str, dict[str, Value]] = {}
    for value in _lines(text, file, include or (lambda name: None), made, depth=0):
        _read_line(value, made, defaults)
    return made


def _lines(text: str, file: str, include: Include, made: Conf, depth: int) -> Iterator[Value]:
    """Yield logical lines, those of included files in their place."""
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.sub(r"(?<!\\)#.*", "", raw).replace("\\#", "#").rstrip()
        first = first or number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        whole, pending = (pending + line).strip(), ""
        at, first = first, 0
        if not whole:
            continue
        word, _, name = whole.partition(" ")
        if word.lower() == "include" and "=" not in word:
            yield from _included(Value(name.strip(), file, at), include, made, depth)
        else:
            yield Value(whole, file, at)


def _included(wanted: Value, include: Include, made: Conf, depth: int) -> Iterator[Value]:
    cluster = made.text("clustername")
    name = wanted.text.replace("%c", cluster)
    text = include(name) if depth < _DEEPEST else None
    if text is None:
        made.warnings.append(Remark(wanted.place, "Include", f"{name} could not be read"))
        return
    yield from _lines(text, name, include, made, depth + 1)


def _read_line(line: Value, made: Conf, defaults: dict[str, dict[str, Value]]) -> None:
    pairs = [(key, value.strip('"')) for key, value in _PAIR.findall(line.text)]
    if not pairs:
        made.unknown.append(Remark(line.place, line.text, "is not KEY=VALUE"))
        return
    first = pairs[0][0].lower()
    if first in RECORDS:
        _read_record(first, pairs, line, made, defaults)
        return
    for key, text in pairs:
        _read_setting(key, text, line, made)


def _read_setting(key: str, text: str, line: Value, made: Conf) -> None:
    lower = key.lower()
    if lower in SEED_SPELLINGS:
        legal, why = SEED_SPELLINGS[lower]
        message = f"is not a key of Slurm, which refuses it; write {legal}={text}{why}"
        made.warnings.append(Remark(line.place, key, message))
        key, lower = legal, legal.lower()
    elif lower not in KNOWN:
        made.unknown.append(Remark(line.place, key, "is not a key of slurm.conf"))
        return
    made.settings[lower] = Value(text, line.file, line.line, key)


def _read_record(
    kind: str,
    pairs: list[tuple[str, str]],
    line: Value,
    made: Conf,
    defaults: dict[str, dict[str, Value]],
) -> None:
    keys: dict[str, Value] = {}
    for key, text in pairs[1:]:
        if key.lower() not in RECORDS[kind]:
            made.unknown.append(Remark(line.place, key, f"is not a key of {pairs[0][0]}"))
            continue
        keys[key.lower()] = Value(text, line.file, line.line)
    names = pairs[0][1]
    if names.upper() == "DEFAULT":
        defaults.setdefault(kind, {}).update(keys)
        return
    whole = {**defaults.get(kind, {}), **keys}
    try:
        expanded = expand(names) if kind == "nodename" else [names]
    except BadHostList as error:
        made.unknown.append(Remark(line.place, names, str(error)))
        return
    into = {"nodename": made.nodes, "partitionname": made.partitions, "nodeset": made.node_sets}
    for name in expanded:
        if kind in into:
            into[kind].append(Record(name, whole, line))


def hosts_of(conf: Conf, partition: Record) -> list[str]:
    """Return the nodes of a partition, node sets and ALL resolved, in the order of the file."""
    known = {node.name: node for node in conf.nodes}
    found: dict[str, None] = {}
    sets = {one.name: one for one in conf.node_sets}
    written = partition.text("nodes")
    if written.upper() == "ALL":
        return list(known)
    for name in expand(written):
        one = sets.get(name)
        if one is None:
            found.setdefault(name)
            continue
        feature = one.text("feature")
        for node in conf.nodes:
            features = node.text("features", node.text("feature")).split(",")
            if feature and feature in features:
                found.setdefault(node.name)
        for other in expand(one.text("nodes")):
            found.setdefault(other)
    return list(found)


def minutes_of(text: str) -> int | None:
    """Return a time of slurm.conf in minutes, rounded up; None if there is no end.

    >>> minutes_of("7-00:00:00"), minutes_of("90"), minutes_of("1:30"), minutes_of("INFINITE")
    (10080, 90, 2, None)
    """
    plain = text.strip().upper()
    if plain in ("INFINITE", "UNLIMITED", "-1", ""):
        return None
    days, _, rest = plain.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if days:
        parts += [0] * (3 - len(parts))
        seconds = int(days) * 86_400 + parts[0] * 3600 + parts[1] * 60 + parts[2]
    elif len(parts) == 3:
        seconds = parts[0] * 3600 + parts[1] * 60 + parts[2]
    else:
        seconds = parts[0] * 60 + (parts[1] if len(parts) == 2 else 0)
    return -(-seconds // 60)


# ---- the keys that slurm.conf may have, in lower case, as its manual lists them ----------------

KNOWN = frozenset(
    """
    accountingstoragebackuphost accountingstorageenforce accountingstorageexternalhost
    accountingstoragehost accountingstorageparameters accountingstoragepass accountingstorageport
    accountingstoragetres accountingstoragetype accountingstorageuser accountingstoreflags
    acctgatherenergytype acctgatherfilesystemtype acctgatherinterconnecttype acctgathernodefreq
    acctgatherprofiletype allowspecresourcesusage authalttypes authaltparameters authinfo authtype
    batchstarttimeout bcastexclude bcastparameters burstbuffertype certgentype certmgrtype
    clifilterplugins clustername commparameters completewait controlmachine controladdr
    coreSpecPlugin corespecplugin cpufreqdef cpufreqgovernors credtype datacenter debugflags
    defcpupergpu defmempercpu defmempergpu defmempernode dependencyparameters disablerootjobs
    eioTimeout eiotimeout enforcepartlimits epilog epilogmsgtime epilogslurmctld epilogtimeout
    extsensorsfreq extsensorstype fairsharedampeningfactor federationparameters firstjobid
    gettimeout gpufreqdef grestypes groupupdateforce groupupdatetime healthcheckinterval
    healthchecknodestate healthcheckprogram hashplugin inactivelimit interactivestepoptions
    jobacctgatherfrequency jobacctgatherparams jobacctgathertype jobcomphost jobcomploc
    jobcompparams jobcomppass jobcompport jobcomptype jobcompuser jobcontainertype
    jobcredentialprivatekey jobcredentialpubliccertificate jobfileappend jobrequeue
    jobsubmitplugins keepalivetime killonbadexit killwait launchparameters launchtype licenses
    logtimeformat maildomain mailprog maxarraysize maxbatchrequeue maxdbdmsgs maxjobcount maxjobid
    maxmempercpu maxmempernode maxnodecount maxstepcount maxtaskspernode mcsparameters mcsplugin
    messagetimeout minjobage mpidefault mpiparams namespacetype nodefeaturesplugins overtimelimit
    pluginddir plugindir pluggables plugstackconfig powerparameters powerplugin preemptexempttime
    preemptmode preemptparameters preempttype prepparameters prepplugins prioritycalcperiod
    prioritycalcpperiod prioritydecayhalflife priorityfavorsmall priorityflags priorityparameters
    prioritymaxage prioritysitefactorparameters prioritysitefactorplugin prioritytype
    priorityusageresetperiod priorityweightage priorityweightassoc priorityweightfairshare
    priorityweightjobsize priorityweightpartition priorityweightqos priorityweighttres privatedata
    proctracktype prolog prologepilogtimeout prologflags prologslurmctld prologtimeout
    propagateprioprocess propagateresourcelimits propagateresourcelimitsexcept rebootprogram
    reconfigflags requeueexit requeueexithold resumefailprogram resumeprogram resumerate
    resumetimeout resvepilog resvoverrun resvprolog returntoservice routeplugin salloccommand
    schedulerparameters schedulertimeslice schedulertype scronparameters selecttype
    selecttypeparameters slurmctldaddr slurmctlddebug slurmctldhost slurmctldlogfile
    slurmctldparameters slurmctldpidfile slurmctldport slurmctldprimaryoffprog
    slurmctldprimaryonprog slurmctldsyslogdebug slurmctldtimeout slurmddebug slurmdlogfile
    slurmdparameters slurmdpidfile slurmdport slurmdspooldir slurmdsyslogdebug slurmdtimeout
    slurmduser slurmschedlogfile slurmschedloglevel slurmuser srunepilog srunportrange srunprolog
    statesavelocation suspendexcnodes suspendexcparts suspendexcstates suspendprogram suspendrate
    suspendtime suspendtimeout switchparameters switchtype taskepilog taskplugin taskpluginparam
    taskprolog tcptimeout tlsparameters tlstype tmpfs topologyparam topologyplugin trackwckey
    treewidth unkillablestepprogram unkillablesteptimeout usepam vsizefactor waittime x11parameters
    backupcontroller backupaddr cryptotype checkpointtype fastschedule cachegroups usePAM
    """.lower().split()
)

_NODE = frozenset(
    """
    nodehostname nodeaddr bcastaddr boards corespeccount corespersocket cpubind cpus cpuspeclist
    features feature gres memspeclimit parameters port procs realmemory reason reservedcores
    restrictedcoresPerGPU sockets socketsperboard state threadspercore tmpdisk topology weight
    """.lower().split()
)

_PARTITION = frozenset(
    """
    allocnodes allowaccounts allowgroups allowqos alternate cpubind default defaulttime
    defcpupergpu defmempercpu defmempergpu defmempernode denyaccounts denyqos disablerootjobs
    exclusivetopo exclusiveuser gracetime hidden lln maxcpuspernode maxcpuspersocket maxmempercpu
    maxmempernode maxnodes maxtime minnodes nodes oversubscribe shared overtimelimit powerdownonidle
    preemptmode priority priorityjobfactor prioritytier qos reqresv resumetimeout rootonly
    selecttypeparameters state suspendtime suspendtimeout topology tresbillingweights
    maxcpus maxgpus
    """.lower().split()
)

# Kinds of records, and what may stand in each.
RECORDS: Mapping[str, frozenset[str]] = {
    "nodename": _NODE,
    "partitionname": _PARTITION,
    "nodeset": frozenset({"feature", "nodes"}),
    "downnodes": frozenset({"reason", "state"}),
    "frontendname": frozenset({"frontendaddr", "port", "state", "reason", "allowusers"}),
    "switchname": frozenset({"switches", "nodes", "linkspeed"}),
}

# Seen in documents about Slurm, refused by Slurm itself: what the key is really called.
SEED_SPELLINGS: Mapping[str, tuple[str, str]] = {
    "requeue": ("JobRequeue", " (1 is the default anyway)"),
}
