"""Authentication, authorization and credentials of the API.

filters            Host and Origin, authentication by tokens, impersonation, requests in flight
authorize          roles and bindings, evaluated; users cannot grant rights that they do not have
roles              the roles that every instance has
reserved_fields    fields that the right to write an object does not include
reviews            SelfSubjectReview, SubjectAccessReview and the like
tls, certify       certificates
credential_files   the kubeconfig, and files for their owner alone
"""
