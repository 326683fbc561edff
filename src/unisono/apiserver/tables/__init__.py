"""What `kubectl get` shows: rows of cells, computed by the server for every kind.

`table` puts them together. Built-in kinds have a printer each (`core`, `workloads`, …, all
named in `table`); the others get theirs from the columns that their definition declares
(`jsonpath`).
"""
