{{- define "apisix-drain.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "apisix-drain.fullname" -}}
{{- $name := include "apisix-drain.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Of objects without a namespace: two releases of one name in two namespaces must not share them. */}}
{{- define "apisix-drain.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "apisix-drain.fullname" .) -}}
{{- end -}}

{{/* Whether Helm sees the cluster. `helm template`, and so Argo CD, does not: what is made there would be new with each rendering. */}}
{{- define "apisix-drain.seesCluster" -}}
{{- if hasKey (lookup "v1" "Secret" .Release.Namespace "") "items" }}true{{ end -}}
{{- end -}}

{{/* Whether the chart makes the Secret `name`: where it sees that there is none, and its own again with each upgrade. */}}
{{- define "apisix-drain.makes" -}}
{{- if include "apisix-drain.seesCluster" .root -}}
{{- $found := lookup "v1" "Secret" .root.Release.Namespace .name -}}
{{- if or (not $found) (eq .root.Release.Name (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $found)) }}true{{ end -}}
{{- end -}}
{{- end -}}

{{- define "apisix-drain.selectorLabels" -}}
app.kubernetes.io/name: {{ include "apisix-drain.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "apisix-drain.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "apisix-drain.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Of an object of this release: `commonAnnotations`, and its own, which win. */}}
{{- define "apisix-drain.annotations" -}}
{{- with merge (dict) (index . 1) (index . 0).Values.commonAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "apisix-drain.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "apisix-drain.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: must name an existing ServiceAccount while serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "apisix-drain.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* What every container of the chart is denied: Pod Security "restricted", and a root file system that cannot be written. */}}
{{- define "apisix-drain.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

