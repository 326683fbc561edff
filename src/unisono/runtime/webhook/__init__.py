"""The rules of `runtime.admission` as webhooks, for API servers without admission policies.

rules          what is changed or refused, as pure functions of a request
configuration  what an API server has to be told of it, and what else an installation needs then
serving        the listener, its certificate in a Secret, and the loop that keeps that trusted
"""
