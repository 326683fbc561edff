"""The documentation as a static site: every page of the project, linked, searchable, offline.

pages    which pages there are, what each is called, and where it goes
render   one page as HTML: headings with anchors, links that lead to the site's own pages
"""
