"""Roles, bindings, tokens, and the reviews that answer who may do what."""

KINDS = {
    "rbac.authorization.k8s.io/v1 Role": "Role",
    "rbac.authorization.k8s.io/v1 ClusterRole": "ClusterRole",
    "rbac.authorization.k8s.io/v1 RoleBinding": "RoleBinding",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": "ClusterRoleBinding",
    "authentication.k8s.io/v1 TokenRequest": "TokenRequest",
    "authentication.k8s.io/v1 TokenReview": "TokenReview",
    "authentication.k8s.io/v1 SelfSubjectReview": "SelfSubjectReview",
    "authorization.k8s.io/v1 SelfSubjectAccessReview": "SelfSubjectAccessReview",
    "authorization.k8s.io/v1 SelfSubjectRulesReview": "SelfSubjectRulesReview",
    "authorization.k8s.io/v1 SubjectAccessReview": "SubjectAccessReview",
    "authorization.k8s.io/v1 LocalSubjectAccessReview": "LocalSubjectAccessReview",
}

MESSAGES = """
Role  1 metadata: ObjectMeta, 2 rules: []PolicyRule
PolicyRule  1 verbs: []string, 2 apiGroups: []string, 3 resources: []string,
    4 resourceNames: []string, 5 nonResourceURLs: []string
ClusterRole  1 metadata: ObjectMeta, 2 rules: []PolicyRule, 3 aggregationRule*: AggregationRule
AggregationRule  1 clusterRoleSelectors: []LabelSelector
RoleBinding  1 metadata: ObjectMeta, 2 subjects: []Subject, 3 roleRef*: RoleRef
Subject  1 kind*, 2 apiGroup, 3 name*, 4 namespace
RoleRef  1 apiGroup*, 2 kind*, 3 name*
ClusterRoleBinding  1 metadata: ObjectMeta, 2 subjects: []Subject, 3 roleRef*: RoleRef
TokenRequest  1 metadata: ObjectMeta, 2 spec*: TokenRequestSpec, 3 status: TokenRequestStatus
TokenRequestSpec  1 audiences: []string, 3 boundObjectRef*: BoundObjectReference,
    4 expirationSeconds*: int
BoundObjectReference  1 kind, 2 apiVersion, 3 name, 4 uid
TokenRequestStatus  1 token*, 2 expirationTimestamp: time
TokenReview  1 metadata: ObjectMeta, 2 spec*: TokenReviewSpec, 3 status: TokenReviewStatus
TokenReviewSpec  1 token, 2 audiences: []string
TokenReviewStatus  1 authenticated: bool, 2 user: UserInfo, 3 error, 4 audiences: []string
UserInfo  1 username, 2 uid, 3 groups: []string, 4 extra: {}strings
SelfSubjectReview  1 metadata: ObjectMeta, 2 status: SelfSubjectReviewStatus
SelfSubjectReviewStatus  1 userInfo: UserInfo
SelfSubjectAccessReview  1 metadata: ObjectMeta, 2 spec*: SelfSubjectAccessReviewSpec,
    3 status: SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec  1 resourceAttributes*: ResourceAttributes,
    2 nonResourceAttributes*: NonResourceAttributes
ResourceAttributes  1 namespace, 2 verb, 3 group, 4 version, 5 resource, 6 subresource, 7 name,
    8 fieldSelector*: FieldSelectorAttributes, 9 labelSelector*: LabelSelectorAttributes
FieldSelectorAttributes  1 rawSelector, 2 requirements: []FieldSelectorRequirement
LabelSelectorAttributes  1 rawSelector, 2 requirements: []LabelSelectorRequirement
NonResourceAttributes  1 path, 2 verb
SubjectAccessReviewStatus  1 allowed*: bool, 2 reason, 3 evaluationError, 4 denied: bool
SelfSubjectRulesReview  1 metadata: ObjectMeta, 2 spec*: SelfSubjectRulesReviewSpec,
    3 status: SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec  1 namespace
SubjectRulesReviewStatus  1 resourceRules: []ResourceRule, 2 nonResourceRules: []NonResourceRule,
    3 incomplete*: bool, 4 evaluationError
ResourceRule  1 verbs: []string, 2 apiGroups: []string, 3 resources: []string,
    4 resourceNames: []string
NonResourceRule  1 verbs: []string, 2 nonResourceURLs: []string
SubjectAccessReview  1 metadata: ObjectMeta, 2 spec*: SubjectAccessReviewSpec,
    3 status: SubjectAccessReviewStatus
SubjectAccessReviewSpec  1 resourceAttributes*: ResourceAttributes,
    2 nonResourceAttributes*: NonResourceAttributes, 3 user, 4 groups: []string, 5 extra: {}strings,
    6 uid
LocalSubjectAccessReview  1 metadata: ObjectMeta, 2 spec*: SubjectAccessReviewSpec,
    3 status: SubjectAccessReviewStatus
"""
