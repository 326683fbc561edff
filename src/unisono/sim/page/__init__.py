"""One page about outcomes, for a browser: no other files, no network.

series     curves, small however long the run: utilisation, queue, waits
windows    intervals that are worth a close look
overview   the whole run, node by node
gantt      which jobs ran on which nodes in a window, as rectangles
render     all of it as HTML, with `page.css` and `page.js` inside
"""
