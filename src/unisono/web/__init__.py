"""The web page: the state of the cluster for people, and what they do about it.

dashboard.py     sorted workloads and sums over the cache of `monitor`, kept by changes
auth.py          permissions of a user, and sign-in with one token
cluster_auth.py  sign-in with a token of the cluster
views/           every page as data, from the dashboard and a user's permissions
pages.py         the pages by name, and the past from the ledger
actions/         what people do with the page, as themselves and confirmed first
details.py       events, manifest and logs of a gang, read as the user
view_models.py   a page as data, and what changed in it since it was last sent
server.py        the listener: files, pages, reports, signing in
assets/          the page itself: plain HTML, CSS and JavaScript modules, nothing from elsewhere
"""
