"""Bodies in Kubernetes' protobuf form, which kubectl 1.32 and newer send for typed commands.

`decode` turns one into the JSON object that the same command would have sent before; `messages`
knows the notation in which `fields` lists the numbers. Answers are always JSON, so nothing here
encodes.
"""
