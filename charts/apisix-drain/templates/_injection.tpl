{{/*
What injection.policy (CEL, templates/injection-policy.yaml) and injection.webhook (agent/hook/inject/) have in common. They make
the same of a pod: test/install/injection.test.ts holds one against the other.
*/}}
{{/* What adds hooks: `policy`, `webhook` or nothing. Without a choice: what this Kubernetes has, unless the agent is restricted to namespaces. The webhook needs a certificate that stays. */}}
{{- define "apisix-drain.injects" -}}
{{- $policy := .Values.injection.policy.enabled -}}
{{- $webhook := .Values.injection.webhook.enabled -}}
{{- $isNew := semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version -}}
{{- if and $policy $webhook -}}
{{- fail "injection.webhook: does what injection.policy does; enable one of the two" -}}
{{- end -}}
{{- if and $policy (not $isNew) -}}
{{- fail "injection.policy: MutatingAdmissionPolicy is in Kubernetes from 1.36 on; use injection.webhook" -}}
{{- end -}}
{{- $isOpen := and (kindIs "invalid" $policy) (kindIs "invalid" $webhook) (not (dig "kubernetes" "namespaces" nil .Values.config)) -}}
{{- if or $policy (and $isOpen $isNew) -}}policy
{{- else if or $webhook (and $isOpen (include "apisix-drain.webhookIsKept" .)) -}}webhook
{{- end -}}
{{- end -}}

{{/* Whether the webhook has a certificate that is the same after an upgrade. */}}
{{- define "apisix-drain.webhookIsKept" -}}
{{- if or .Values.tls.webhook.existingSecret .Values.tls.webhook.issuerRef (include "apisix-drain.seesCluster" .) }}true{{ end -}}
{{- end -}}

{{- define "apisix-drain.hookUrl" -}}
{{- printf "http://%s.%s:%d/v1/prestop" (include "apisix-drain.fullname" .) .Release.Namespace (int .Values.service.port) -}}
{{- end -}}

{{- define "apisix-drain.hookImage" -}}
{{- $image := .Values.injection.helper.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Never in these, whatever their labels say: what the cluster and the agent themselves need to start. */}}
{{- define "apisix-drain.notExcluded" -}}
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: {{ concat (list "kube-system" .Release.Namespace) .Values.injection.excludedNamespaces | uniq | toJson }}
{{- end -}}

{{/* A namespace that asks for it, but for its pods that do not want it. */}}
{{- define "apisix-drain.byNamespace" -}}
namespaceSelector:
  matchLabels:
    apisix-drain.io/inject: 'true'
  matchExpressions:
    {{- include "apisix-drain.notExcluded" . | nindent 4 }}
objectSelector:
  matchExpressions:
    - { key: apisix-drain.io/inject, operator: NotIn, values: ['false'] }
{{- end -}}

{{/* A pod that asks for it by itself. */}}
{{- define "apisix-drain.byPod" -}}
namespaceSelector:
  matchExpressions:
    {{- include "apisix-drain.notExcluded" . | nindent 4 }}
objectSelector:
  matchLabels:
    apisix-drain.io/inject: 'true'
{{- end -}}

{{- define "apisix-drain.helperContainer" -}}
{{- $volume := "apisix-drain-hook" -}}
name: {{ $volume }}
image: {{ include "apisix-drain.hookImage" . | quote }}
imagePullPolicy: {{ .Values.injection.helper.image.pullPolicy }}
command: [/apisix-drain-hook, install, /apisix-drain]
resources:
  {{- toYaml .Values.injection.helper.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: { drop: [ALL] }
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  {{- with .Values.podSecurityContext.runAsUser }}
  runAsUser: {{ . | int64 }}
  {{- end }}
  seccompProfile: { type: RuntimeDefault }
volumeMounts:
  - { name: {{ $volume }}, mountPath: /apisix-drain }
{{- end -}}

{{/* The volumes of a pod with the hook, and where its containers find them. */}}
{{- define "apisix-drain.hookVolumes" -}}
{{- if eq .Values.injection.hook "helper" }}
- volume: { name: apisix-drain-hook, emptyDir: { sizeLimit: 32Mi } }
  mount: { name: apisix-drain-hook, mountPath: /apisix-drain, readOnly: true }
{{- end }}
{{- end -}}

{{/* A value as CEL takes it: its maps and lists may hold one type only, which `dyn` makes of any. */}}
{{- define "apisix-drain.cel" -}}
{{- if kindIs "map" . -}}
dyn({ {{- range $i, $key := keys . | sortAlpha }}{{ if $i }}, {{ end }}{{ $key | toJson }}: {{ include "apisix-drain.cel" (get $ $key) }}{{ end -}} })
{{- else if kindIs "slice" . -}}
dyn([ {{- range $i, $item := . }}{{ if $i }}, {{ end }}{{ include "apisix-drain.cel" $item }}{{ end -}} ])
{{- else -}}
dyn({{ if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ toJson . }}{{ end }})
{{- end -}}
{{- end -}}

{{- define "apisix-drain.webhookSecret" -}}
{{- default (printf "%s-webhook-tls" (include "apisix-drain.fullname" .)) .Values.tls.webhook.existingSecret -}}
{{- end -}}

{{- define "apisix-drain.webhookHost" -}}
{{- include "apisix-drain.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end -}}

{{/* What the webhook adds: agent/hook/inject/settings.ts. */}}
{{- define "apisix-drain.injectSettings" -}}
host: {{ include "apisix-drain.webhookHost" . }}
certificateFile: /run/secrets/apisix-drain/webhook.crt
keyFile: /run/secrets/apisix-drain/webhook.key
hook: {{ .Values.injection.hook }}
url: {{ include "apisix-drain.hookUrl" . }}
{{- if eq .Values.injection.hook "helper" }}
initContainer:
  {{- include "apisix-drain.helperContainer" . | nindent 2 }}
{{- end }}
volumes:
  {{- include "apisix-drain.hookVolumes" . | fromYamlArray | toYaml | nindent 2 }}
{{- end -}}
