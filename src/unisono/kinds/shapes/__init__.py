"""What every kind looks like on the wire: its names, its versions, its schema, its columns.

`data/*.json` holds one file per API group: facts about field names, types, defaults and list keys,
with one-line descriptions of our own. `served` reads them; `shape` is the view on a schema that
validation, patching and server-side apply share. The structs beside this package type only what a
decision reads; a test holds the two together.
"""
