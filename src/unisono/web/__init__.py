"""The web page: what the cluster does, for people; read only.

board.py       lines and sums over the books of `monitor`, kept by changes
sight.py       what a person may see
views/         every page as data, from the board and somebody's sight
pages.py       the pages by name, and the past from whoever keeps it
shown.py       what became different in a page since it was last sent
door.py        who comes in
serve.py       the listener: files, pages, reports, signing in
assets/        the page itself: plain HTML, CSS and modules of JavaScript, nothing from elsewhere
"""
