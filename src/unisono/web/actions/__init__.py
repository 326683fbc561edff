"""What people do with the page: hold, cancel, drain …, as the signed-in user and confirmed first.

action.py        an action as data: what it asks for, what it writes, what is known to follow
gangs.py         hold, release, priority, queue, cancel
queues.py        stop and resume a ClusterQueue
nodes.py         cordon, drain, uncordon, lift a quarantine, plan maintenance
what_if.py       what follows, tried on a copy of the scheduler's state
page_actions.py  list, preview and carry out, through an API client of the user
requests.py      the same over HTTP, with bounds and proof against other sites
"""
