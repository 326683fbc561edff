"""The rules of `runtime.admission` as webhooks, for API servers without admission policies.

rules          what is changed or refused, as pure functions of a request
configuration  what an API server has to be told of it, and what else an installation needs then
certificates   the certificate that the API server trusts, kept in a Secret and renewed in time
serving        the listener, and the loop that keeps its certificate trusted
"""
