{{/* The port the agent listens on. */}}
{{- define "apisix-drain.port" -}}
{{- dig "serve" "port" 8080 .Values.config -}}
{{- end -}}

{{/* The port of dashboard and metrics; empty if they are on that of the hooks. */}}
{{- define "apisix-drain.pagePort" -}}
{{- with dig "serve" "pagePort" nil .Values.config }}{{ . }}{{ end -}}
{{- end -}}

{{- define "apisix-drain.pagePortName" -}}
{{- ternary "page" "http" (not (empty (include "apisix-drain.pagePort" .))) -}}
{{- end -}}

{{- define "apisix-drain.hasBarrier" -}}
{{- if or .Values.plugin.enabled (not (kindIs "invalid" (dig "apisix" "barrier" nil .Values.config))) }}true{{ end -}}
{{- end -}}

{{/* The Secret with the certificate of the Barrier listeners; empty if there is none. By default the plugin's chart values bring one. */}}
{{- define "apisix-drain.barrierTLS" -}}
{{- $own := .Values.tls.barrierCA.existingConfigMap -}}
{{- $enabled := .Values.tls.barrier.enabled -}}
{{- if kindIs "invalid" $enabled -}}
{{- $enabled = and .Values.plugin.enabled (not $own) -}}
{{- end -}}
{{- if $enabled -}}
{{- if not (include "apisix-drain.hasBarrier" .) -}}
{{- fail "tls.barrier.enabled: there is no Barrier listener without plugin.enabled or config.apisix.barrier" -}}
{{- end -}}
{{- if $own -}}
{{- fail "tls.barrierCA.existingConfigMap: tls.barrier brings a CA; keep one of the two" -}}
{{- end -}}
{{- default (printf "%s-barrier-tls" (include "apisix-drain.fullname" .)) .Values.tls.barrier.existingSecret -}}
{{- end -}}
{{- end -}}

{{- define "apisix-drain.barrierScheme" -}}
{{- $barrier := default dict (dig "apisix" "barrier" nil .Values.config) -}}
{{- default (ternary "http" "https" (eq "false" (toString .Values.tls.barrier.enabled))) (get $barrier "scheme") -}}
{{- end -}}

{{/* The Secret whose CA the agents mount: not while they still use plain HTTP. */}}
{{- define "apisix-drain.barrierCASecret" -}}
{{- if eq "https" (include "apisix-drain.barrierScheme" .) }}{{ include "apisix-drain.barrierTLS" . }}{{ end -}}
{{- end -}}

{{/* Gateways are called by address; their certificate has this name. */}}
{{- define "apisix-drain.barrierName" -}}
{{- get (default dict (dig "apisix" "barrier" nil .Values.config)) "serverName" | default "barrier.apisix-drain" -}}
{{- end -}}

{{/* The Secret with the token that agents and gateways share. `apisix-drain plugin values` mounts it by this name. */}}
{{- define "apisix-drain.barrierToken" -}}
{{- default "apisix-drain-token" .Values.secrets.barrierToken.existingSecret -}}
{{- end -}}

{{- define "apisix-drain.dashboardToken" -}}
{{- default (printf "%s-page" (include "apisix-drain.fullname" .)) .Values.secrets.dashboardToken.existingSecret -}}
{{- end -}}

{{- define "apisix-drain.hasDashboardToken" -}}
{{- $dashboard := dig "serve" "dashboard" dict .Values.config -}}
{{- if and (get $dashboard "enabled") (eq (default "token" (get $dashboard "auth")) "token") }}true{{ end -}}
{{- end -}}

{{/* Releases in one namespace must not elect from among each other's agents. */}}
{{- define "apisix-drain.lease" -}}
{{- dig "leader" "lease" (printf "%s/%s" .Release.Namespace (include "apisix-drain.fullname" .)) .Values.config -}}
{{- end -}}

{{/* Where the gateways' pods are looked for. Not everywhere: whoever can make a pod with their label is shown our token. */}}
{{- define "apisix-drain.gatewayNamespace" -}}
{{- if not (dig "apisix" "gateways" "static" nil .Values.config) -}}
{{- dig "apisix" "gateways" "namespace" .Release.Namespace .Values.config -}}
{{- end -}}
{{- end -}}

{{/* `values.config`, and what only the chart knows. Secrets are paths here, never values. */}}
{{- define "apisix-drain.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $apisix := get $config "apisix" -}}
{{- with get $apisix "admin" -}}
{{- if not (get . "url") -}}
{{- $_ := set . "url" (printf "http://apisix-admin.%s:9180" $.Release.Namespace) -}}
{{- end -}}
{{- $_ := set . "keyFile" "/run/secrets/apisix-drain/admin-key" -}}
{{- if $.Values.tls.adminCA.existingConfigMap -}}
{{- $_ := set . "caFile" "/run/secrets/apisix-drain/admin-ca.crt" -}}
{{- end -}}
{{- else -}}
{{- if not (include "apisix-drain.hasBarrier" .) -}}
{{- fail "config.apisix.admin: is needed without plugin.enabled or config.apisix.barrier" -}}
{{- end -}}
{{- end -}}
{{- if include "apisix-drain.hasBarrier" . -}}
{{- $barrier := default dict (get $apisix "barrier") -}}
{{- $_ := set $apisix "barrier" $barrier -}}
{{- $_ := set $barrier "tokenFile" "/run/secrets/apisix-drain/barrier-token" -}}
{{- $_ := set $barrier "scheme" (include "apisix-drain.barrierScheme" .) -}}
{{- if include "apisix-drain.barrierCASecret" . -}}
{{- $_ := set $barrier "serverName" (include "apisix-drain.barrierName" .) -}}
{{- end -}}
{{- if or .Values.tls.barrierCA.existingConfigMap (include "apisix-drain.barrierCASecret" .) -}}
{{- $_ := set $barrier "caFile" "/run/secrets/apisix-drain/barrier-ca.crt" -}}
{{- end -}}
{{- else -}}
{{- $_ := unset $apisix "barrier" -}}
{{- end -}}
{{- if include "apisix-drain.hasDashboardToken" . -}}
{{- $_ := set $config.serve.dashboard "tokenFile" "/run/secrets/apisix-drain/dashboard-token" -}}
{{- end -}}
{{- $_ := set $config "leader" (merge (dict "lease" (include "apisix-drain.lease" .)) (default dict (get $config "leader"))) -}}
{{- with include "apisix-drain.gatewayNamespace" . -}}
{{- $_ := set $apisix "gateways" (merge (dict "namespace" .) (default dict (get $apisix "gateways"))) -}}
{{- end -}}
{{- if eq "webhook" (include "apisix-drain.injects" .) -}}
{{- $_ := set $config "inject" (dict "file" "/etc/apisix-drain/injection.yaml" "port" .Values.injection.webhook.port) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* A duration of the configuration, such as 250ms or 1m, in whole seconds, rounded up. */}}
{{- define "apisix-drain.seconds" -}}
{{- $number := regexFind "^[0-9.]+" . | float64 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- mulf $number (get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0) $unit) | ceil | int -}}
{{- end -}}

{{/* Grace that ends before the agent has let go of the last hook would kill that hook's answer. */}}
{{- define "apisix-drain.grace" -}}
{{- $holds := include "apisix-drain.seconds" (dig "serve" "shutdownTimeout" "20s" .Values.config) | int -}}
{{- $needed := add .Values.preStopSeconds $holds 9 -}}
{{- if lt (int .Values.terminationGracePeriodSeconds) (int $needed) -}}
{{- fail (printf "terminationGracePeriodSeconds: %d is too short; preStopSeconds (%d), config.serve.shutdownTimeout (%d s) and closing (9 s) need %d" (int .Values.terminationGracePeriodSeconds) (int .Values.preStopSeconds) $holds $needed) -}}
{{- end -}}
{{- int .Values.terminationGracePeriodSeconds -}}
{{- end -}}
