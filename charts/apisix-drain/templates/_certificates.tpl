{{/*
Both servers of this release get their certificate in one of three ways: `existingSecret`, an issuer of cert-manager (`issuerRef`), or a
CA of the chart. Parameters: `root`, `values` (tls.barrier or tls.webhook), `secret`, `host`.
*/}}
{{- define "apisix-drain.certificate" -}}
{{- if and .values.existingSecret .values.issuerRef }}
{{- fail (printf "%s: existingSecret and issuerRef both say where the certificate is; keep one of the two" .secret) }}
{{- end }}
{{- if .values.issuerRef }}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .secret }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "apisix-drain.labels" .root | nindent 4 }}
  {{- include "apisix-drain.annotations" (list .root dict) }}
spec:
  secretName: {{ .secret }}
  dnsNames: [{{ .host }}]
  {{- with .duration }}
  duration: {{ . }}
  {{- end }}
  usages: [digital signature, server auth]
  privateKey: { algorithm: ECDSA, size: 256, rotationPolicy: Always }
  issuerRef:
    {{- toYaml .values.issuerRef | nindent 4 }}
{{- end }}
{{- end -}}

{{/* The data of the Secret that the chart makes: what is in the cluster, or a CA and a certificate for ten years. */}}
{{- define "apisix-drain.pair" -}}
{{- $data := dig "data" dict (lookup "v1" "Secret" .root.Release.Namespace .secret) -}}
{{- if not (get $data "tls.key") -}}
{{- $ca := genCA (printf "%s CA" .secret) 3650 -}}
{{- $pair := genSignedCert .secret nil (list .host) 3650 $ca -}}
{{- $data = dict "ca.crt" ($ca.Cert | b64enc) "tls.crt" ($pair.Cert | b64enc) "tls.key" ($pair.Key | b64enc) -}}
{{- end -}}
{{- pick $data "ca.crt" "tls.crt" "tls.key" | toYaml -}}
{{- end -}}
