"""What an object's schema does to it: unknown fields go, defaults come, mistakes are named.

checker            the three passes as the API calls them; pruning
fill, structure    the other two
node               one place of a schema and its compiled functions, shared between kinds
rules              the rules of a schema, run when the structure is sound
expressions        the language that they are written in
formats            formats and patterns of strings
"""
