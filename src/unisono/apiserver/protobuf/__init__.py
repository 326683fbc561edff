"""Bodies in Kubernetes' protobuf form, which kubectl 1.32 and newer send for typed commands.

`decode` turns one into the JSON object that the same command would have sent before; `fields`
lists the numbers of all messages. Answers are always JSON, so nothing here encodes.
"""
