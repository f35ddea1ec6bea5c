{{/* What the agent asks of the API server (agent/doctor/rights/check-rbac.ts), and nothing else. */}}
{{- define "apisix-drain.podRule" -}}
- apiGroups: ['']
  resources: [pods]
  verbs: [get, list, watch]
{{- end -}}

{{- define "apisix-drain.rules" -}}
{{ include "apisix-drain.podRule" . }}
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
- apiGroups: ['']
  resources: [services]
  verbs: [list, watch]
- apiGroups: ['']
  resources: [namespaces]
  verbs: [get]
- apiGroups: [apps]
  resources: [replicasets, deployments]
  verbs: [get]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}

{{/* One Lease, in one namespace. RBAC cannot tell names apart where an object is created. */}}
{{- define "apisix-drain.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "apisix-drain.lease" . | base }}]
  verbs: [get, update]
{{- end -}}

{{/* A role with its binding: in `namespace`, or for the cluster without one. */}}
{{- define "apisix-drain.grant" }}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "apisix-drain.labels" .root | nindent 4 }}
  {{- include "apisix-drain.annotations" (list .root dict) }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "apisix-drain.labels" .root | nindent 4 }}
  {{- include "apisix-drain.annotations" (list .root dict) }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "apisix-drain.serviceAccountName" .root }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
