"""One page about outcomes, for a browser: no other files, no network.

overview   the whole run: curves of a few hundred points, and use node by node
gantt      which jobs ran on which nodes in a window, as rectangles
render     all of it as HTML, with `page.css` and `page.js` inside
"""
