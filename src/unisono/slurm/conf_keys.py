"""The keys that slurm.conf may have, in lower case; names alone, as its manual lists them."""

from __future__ import annotations

from collections.abc import Mapping

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
