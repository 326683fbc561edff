"""One page about outcomes, for a browser: no other files, no network.

series     curves, small however long the run: utilisation, queue, waits
windows    stretches of time that are worth a close look
gantt      who ran where in a window, as rectangles
render     all of it as HTML, with `page.css` and `page.js` inside
"""
