"""Authentication, authorization and credentials of the API.

guard         the door: right place, known user, not too many at once
authenticate  tokens and the users file
authorize     roles and bindings, evaluated
roles         the roles that every instance has
escalation    users cannot grant rights that they do not have
reviews       SelfSubjectReview, SubjectAccessReview and the like
tls, kubeconfig, files   certificates, how kubectl finds us, files for one pair of eyes
"""
