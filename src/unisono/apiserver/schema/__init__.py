"""What an object's schema does to it: unknown fields go, defaults come, mistakes are named.

checker     the three passes as the API calls them
node        one place of a schema and its compiled functions, shared between kinds
prune, fill, structure   one pass each
rules       the rules of a schema, run when the structure is sound
expressions the language that they are written in
counterpart what an update left alone
"""
