"""The live half: controllers that read one view of the cluster and write small, repeatable steps.

driver      runs controllers: changes in, keys out, one action at a time
actions     what a controller may do to the API
view        what it may look at
"""
