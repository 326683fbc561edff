"""Volumes and claims; sources that only old cloud providers have are left out (415, no loss)."""

KINDS = {
    "v1 PersistentVolumeClaim": "PersistentVolumeClaim",
}

MESSAGES = """
Volume  1 name*, 2 .: VolumeSource
VolumeSource  1 hostPath*: HostPathVolumeSource, 2 emptyDir*: EmptyDirVolumeSource,
    6 secret*: SecretVolumeSource, 7 nfs*: NFSVolumeSource,
    10 persistentVolumeClaim*: PersistentVolumeClaimVolumeSource,
    16 downwardAPI*: DownwardAPIVolumeSource, 19 configMap*: ConfigMapVolumeSource,
    26 projected*: ProjectedVolumeSource, 28 csi*: CSIVolumeSource,
    29 ephemeral*: EphemeralVolumeSource, 30 image*: ImageVolumeSource
HostPathVolumeSource  1 path*, 2 type*
EmptyDirVolumeSource  1 medium, 2 sizeLimit*: quantity
SecretVolumeSource  1 secretName, 2 items: []KeyToPath, 3 defaultMode*: int, 4 optional*: bool
KeyToPath  1 key*, 2 path*, 3 mode*: int
NFSVolumeSource  1 server*, 2 path*, 3 readOnly: bool
PersistentVolumeClaimVolumeSource  1 claimName*, 2 readOnly: bool
DownwardAPIVolumeSource  1 items: []DownwardAPIVolumeFile, 2 defaultMode*: int
DownwardAPIVolumeFile  1 path*, 2 fieldRef*: ObjectFieldSelector,
    3 resourceFieldRef*: ResourceFieldSelector, 4 mode*: int
ObjectFieldSelector  1 apiVersion, 2 fieldPath*
ResourceFieldSelector  1 containerName, 2 resource*, 3 divisor: quantity
ConfigMapVolumeSource  1 .: LocalObjectReference, 2 items: []KeyToPath, 3 defaultMode*: int,
    4 optional*: bool
LocalObjectReference  1 name
ProjectedVolumeSource  1 sources: []VolumeProjection, 2 defaultMode*: int
VolumeProjection  1 secret*: SecretProjection, 2 downwardAPI*: DownwardAPIProjection,
    3 configMap*: ConfigMapProjection, 4 serviceAccountToken*: ServiceAccountTokenProjection,
    5 clusterTrustBundle*: ClusterTrustBundleProjection, 6 podCertificate*: PodCertificateProjection
SecretProjection  1 .: LocalObjectReference, 2 items: []KeyToPath, 4 optional*: bool
DownwardAPIProjection  1 items: []DownwardAPIVolumeFile
ConfigMapProjection  1 .: LocalObjectReference, 2 items: []KeyToPath, 4 optional*: bool
ServiceAccountTokenProjection  1 audience, 2 expirationSeconds*: int, 3 path*
ClusterTrustBundleProjection  1 name*, 2 signerName*, 3 labelSelector*: LabelSelector, 4 path*,
    5 optional*: bool
PodCertificateProjection  1 signerName, 2 keyType, 3 maxExpirationSeconds*: int,
    4 credentialBundlePath, 5 keyPath, 6 certificateChainPath, 7 userAnnotations: {}string
CSIVolumeSource  1 driver*, 2 readOnly*: bool, 3 fsType*, 4 volumeAttributes: {}string,
    5 nodePublishSecretRef*: LocalObjectReference
EphemeralVolumeSource  1 volumeClaimTemplate*: PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate  1 metadata: ObjectMeta, 2 spec*: PersistentVolumeClaimSpec
PersistentVolumeClaimSpec  1 accessModes: []string, 2 resources: VolumeResourceRequirements,
    3 volumeName, 4 selector*: LabelSelector, 5 storageClassName*, 6 volumeMode*,
    7 dataSource*: TypedLocalObjectReference, 8 dataSourceRef*: TypedObjectReference,
    9 volumeAttributesClassName*
VolumeResourceRequirements  1 limits: {}quantity, 2 requests: {}quantity
TypedLocalObjectReference  1 apiGroup*, 2 kind*, 3 name*
TypedObjectReference  1 apiGroup*, 2 kind*, 3 name*, 4 namespace*
ImageVolumeSource  1 reference, 2 pullPolicy
PersistentVolumeClaim  1 metadata: ObjectMeta, 2 spec: PersistentVolumeClaimSpec,
    3 status: PersistentVolumeClaimStatus
PersistentVolumeClaimStatus  1 phase, 2 accessModes: []string, 3 capacity: {}quantity,
    4 conditions: []PersistentVolumeClaimCondition, 5 allocatedResources: {}quantity,
    7 allocatedResourceStatuses: {}string, 8 currentVolumeAttributesClassName*,
    9 modifyVolumeStatus*: ModifyVolumeStatus
PersistentVolumeClaimCondition  1 type*, 2 status*, 3 lastProbeTime: time,
    4 lastTransitionTime: time, 5 reason, 6 message
ModifyVolumeStatus  1 targetVolumeAttributesClassName, 2 status*
"""
