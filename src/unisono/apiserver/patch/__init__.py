"""Patches, server-side apply, and the ownership of fields.

    json_patch     RFC 6902, a list of operations; RFC 7386, a sparse object whose nulls remove
    strategic      Kubernetes' own merge patch for built-in kinds: lists merged by key
    apply          server-side apply: "these fields, with these values, are mine"
    managed_fields what every other write leaves in `metadata.managedFields`

The last two share a vocabulary:

    merge_schema   how finely the writers of a field share it, worked out from the schema
    field_set      a set of field paths in the form of FieldsV1
    compare        which paths differ between two objects, and which paths an object names

All functions are pure: they return new values and leave what they were given alone (`record_update`
alone writes, into `managedFields` of the new object). Kubernetes' rules: kube-api.md §2.5 to §2.7.
"""
