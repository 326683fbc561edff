"""Who may come in, and what they may do.

guard         the door: right place, known user, not too many at once
authenticate  tokens and the users file
authorize     roles and bindings, evaluated
roles         the roles that every instance has
escalation    nobody hands out more than they have
reviews       answers to "who am I" and "may I"
tls, kubeconfig, files   certificates, how kubectl finds us, files for one pair of eyes
"""
