"""The web page: what the cluster does, for people; read only.

picture.py     everything the page shows, as data, from the books of `monitor`
serve.py       the listener: files, the picture, and word when it changed
pages/         the page itself: plain HTML, CSS and JavaScript, nothing from elsewhere
"""
