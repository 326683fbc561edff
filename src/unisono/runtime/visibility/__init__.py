"""The visibility API of Kueue on a real cluster: an extension server that its API server asks.

    kubectl, kueuectl ──▶ API server ──APIService──▶ Service ──▶ any replica, leader or standby

`delegation` says which user the API server asks for and whether that user may see it, `serving`
answers, `objects` is what an installation has for it.
"""
