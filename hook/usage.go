package main

const usage = `apisix-drain-hook: the preStop hook of a pod behind Apache APISIX

  apisix-drain-hook [options]           asks the agent to take this pod out, and returns when that is proved
  apisix-drain-hook install <folder>    copies this program into a folder (for an init container)

If no agent answers, or nothing could be proved, it sleeps until --fallback has passed since its start.

  --url URL               where the agents listen            APISIX_DRAIN_URL              http://apisix-drain.apisix:8080
  --budget DURATION       never takes longer than this       APISIX_DRAIN_BUDGET           24s
  --fallback DURATION     the sleep that it falls back to    APISIX_DRAIN_FALLBACK         5s
  --at-least DURATION     the answer comes no sooner: the    APISIX_DRAIN_AT_LEAST         0s
                          sleep that it replaces
  --connect-timeout DURATION                                 APISIX_DRAIN_CONNECT_TIMEOUT  2s
  --quiet DURATION        then wait until no one has         APISIX_DRAIN_QUIET            0s: do not wait
                          connected for this long
  --pod, --namespace, --uid                                  POD_NAME, POD_NAMESPACE,      none: its address, which the
                          who asks (downward API)            POD_UID                       agent believes of few pods
  --container NAME        whose hook this is: if only it      APISIX_DRAIN_CONTAINER        none: the whole pod
                          stops, only its ports are drained
  --log FILE              write the lines there too          APISIX_DRAIN_LOG              none; /proc/1/fd/2 is the log of
                                                                                           the container
  --fail                  exit with 1 after a fallback       -                             off
  --version, --help

Durations are such as 5s or 200ms. A flag goes before its environment variable.
Exit code: 0, also after a fallback; 1 after a fallback with --fail; 2 for wrong usage, after the fallback.
`
