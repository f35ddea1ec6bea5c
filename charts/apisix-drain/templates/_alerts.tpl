{{/*
The alerts. Every expression is over the metrics of docs/metrics.md; replicas see the same, so the worst of them counts.
Each has a section in docs/troubleshooting.md, and a test in test/chart/alerts that sees it fire.
*/}}
{{- define "apisix-drain.alerts" -}}
- alert: ApisixDrainDown
  severity: critical
  for: 2m
  expr: absent(apisix_drain_build_info{ {{- .at -}} })
  summary: No agent is running
  description: Every preStop hook falls back to its sleep. Look at the pods of the agent.
- alert: ApisixDrainHooksRefused
  severity: warning
  for: 5m
  expr: sum by (error) (rate(apisix_drain_hook_refusals_total{ {{- .at -}} ,error!="shutting-down"}[5m])) > 0
  summary: Hooks are refused and fall back to their sleep
  description: "The agent answered {{ "{{ $labels.error }}" }}. What is missing is in its /readyz, and in `doctor`."
- alert: ApisixDrainHooksAtDeadline
  severity: warning
  expr: sum(increase(apisix_drain_hook_answers_total{ {{- .at -}} ,result="unproved"}[10m])) > 0
  summary: Hooks were answered 503, because nothing was proved
  description: The `why` of these answers, in the agent's log, says what was missing.
- alert: ApisixDrainRequestsAfterAck
  severity: critical
  expr: sum by (gateway) (increase(apisix_drain_requests_after_ack_total{ {{- .at -}} }[10m])) > 0
  summary: A gateway sent requests to a pod after its hook was answered
  description: "The plugin failed inside {{ "{{ $labels.gateway }}" }}. Its error.log says why. Report it."
- alert: ApisixDrainWatchNotLive
  severity: critical
  for: 1m
  expr: min by (kind) (apisix_drain_watch_state{ {{- .at -}} ,state="live"}) < 1
  summary: An agent does not see Kubernetes
  description: "The watch of {{ "{{ $labels.kind }}" }} is not live. Look at the API server and at the agent's permissions."
- alert: ApisixDrainLoopStuck
  severity: critical
  for: 30s
  expr: time() - min(apisix_drain_loop_last_success_timestamp_seconds{ {{- .at -}} }) > 30
  summary: An agent has stopped making rounds
  description: Kubernetes should restart it. Keep its log and report it.
- alert: ApisixDrainInventoryStale
  severity: warning
  for: 1m
  expr: time() - min(apisix_drain_inventory_last_success_timestamp_seconds{ {{- .at -}} }) > 300
  summary: The holders could not be read for five minutes
  description: The Admin API does not answer or refuses the key. Removals are neither made nor proved through it.
- alert: ApisixDrainAdminWritesFail
  severity: warning
  for: 5m
  expr: sum by (result) (rate(apisix_drain_admin_writes_total{ {{- .at -}} ,result=~"refused|failed"}[5m])) > 0
  summary: Removals are not accepted by the Admin API
  description: "Writes end as {{ "{{ $labels.result }}" }}. The agent's log has APISIX's answer."
- alert: ApisixDrainNoGateway
  severity: critical
  for: 1m
  expr: min(sum by (pod) (apisix_drain_gateway_known{ {{- .at -}} })) < 1
  summary: An agent knows no gateway
  description: Nothing can be proved without one. Check config.apisix.gateways.
- alert: ApisixDrainGatewayUnconfirmed
  severity: warning
  expr: sum by (gateway) (increase(apisix_drain_gateway_expired_total{ {{- .at -}} }[15m])) > 0
  summary: A gateway does not confirm removals
  description: "Pods that end may still get requests from {{ "{{ $labels.gateway }}" }}. `doctor` says why."
- alert: ApisixDrainEvidenceLost
  severity: warning
  for: 10m
  expr: max by (gateway) (apisix_drain_gateway_unfit{ {{- .at -}} }) > 0
  summary: The barrier of a gateway cannot be used
  description: "Drains rest on weaker evidence because of {{ "{{ $labels.gateway }}" }}. `doctor` and the dashboard say why."
- alert: ApisixDrainGhosts
  severity: warning
  expr: max(apisix_drain_ghost_oldest_seconds{ {{- .at -}} }) > 300
  summary: APISIX lists nodes whose pods are gone
  description: Requests to them are retried or fail. The dashboard names them; their owner does not take them out.
- alert: ApisixDrainControllerBehind
  severity: warning
  expr: max(apisix_drain_succession_oldest_seconds{ {{- .at -}} }) > 30
  summary: An upstream is behind Kubernetes, and its traffic depends on successors
  description: "Nothing has updated it for {{ "{{ $value }}" }} s. Gateways with the plugin send its requests to successors, as long as an agent runs. The dashboard names it: look at its ingress controller."
- alert: ApisixDrainOwnerBehind
  severity: warning
  expr: max(apisix_drain_owner_behind_seconds{ {{- .at -}} }) > 45
  summary: An upstream is behind Kubernetes, because its owner has not written it
  description: "A change of ready endpoints has been missing in APISIX for {{ "{{ $value }}" }} s. The dashboard and `status` name the upstream. Look at what writes it (an ingress controller, a pipeline)."
- alert: ApisixDrainGatewayBehind
  severity: warning
  expr: max by (gateway) (apisix_drain_gateway_behind_seconds{ {{- .at -}} }) > 45
  summary: A gateway is behind Kubernetes, and has not applied what the Admin API lists
  description: "The gateway {{ "{{ $labels.gateway }}" }} has lacked a change for {{ "{{ $value }}" }} s. Its watch of etcd may be dead. The dashboard and `status` say which worker lacks which revision."
- alert: ApisixDrainGatewaySilent
  severity: warning
  for: 1m
  expr: time() - min by (api, gateway) (apisix_drain_gateway_last_success_timestamp_seconds{ {{- .at -}} }) > 180
  summary: A gateway that is Ready does not answer the agent
  description: "The {{ "{{ $labels.api }}" }} interface of {{ "{{ $labels.gateway }}" }} was not read for minutes. Look at NetworkPolicies, ports and tokens."
{{- end -}}
