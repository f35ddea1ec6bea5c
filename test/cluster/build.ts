/** As a script, this builds the programs of a whole Kubernetes from Go modules into the cache, once for each version. */
import { join } from 'node:path'
import { CACHE, ensureModuleProgram, ensureTool } from '../chart/tools.ts'
import { ensureControlPlane, kubernetesPath, kubernetesProgram } from '../install/build.ts'
import { ensureController } from '../install/controller-build.ts'

/** Debian has containerd 1.6, but the kubelet of Kubernetes 1.37 needs at least 2.0. */
export const CONTAINERD_VERSION = 'v2.2.9'
const CONTAINERD_PROGRAMS = ['containerd', 'containerd-shim-runc-v2', 'ctr'] as const
const KUBERNETES_PROGRAMS = [
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'kubectl'
] as const
const COREDNS_VERSION = 'v1.15.0'

export const COREDNS = join(CACHE, 'bin', `coredns-${COREDNS_VERSION}`)

export const containerdPath = (name: (typeof CONTAINERD_PROGRAMS)[number]): string =>
  join(CACHE, 'bin', `${name}-${CONTAINERD_VERSION}`)

export const programPath = (name: (typeof KUBERNETES_PROGRAMS)[number]): string => kubernetesPath(name)

/** The main package of a CoreDNS with only the needed plugins. The default build has the plugins of every cloud. */
const COREDNS_MAIN = `package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() { coremain.Run() }
`

if (import.meta.main) {
  ensureTool('helm')
  ensureControlPlane()
  ensureController()
  for (const name of CONTAINERD_PROGRAMS)
    ensureModuleProgram({
      path: containerdPath(name),
      module: () => [`require github.com/containerd/containerd/v2 ${CONTAINERD_VERSION}`],
      what: `github.com/containerd/containerd/v2/cmd/${name}`,
      linkerFlags: `-X github.com/containerd/containerd/v2/version.Version=${CONTAINERD_VERSION}`
    })
  ensureModuleProgram({
    path: COREDNS,
    module: () => [`require github.com/coredns/coredns ${COREDNS_VERSION}`],
    main: COREDNS_MAIN,
    what: '.'
  })
  for (const name of KUBERNETES_PROGRAMS) ensureModuleProgram(kubernetesProgram(name))
}
