/**
 * Run as a script, it builds kube-apiserver and etcd from their own Go modules into the cache, once for each version: the oldest
 * Kubernetes that the chart supports, and a current one. It also builds the ingress controller.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  CACHE,
  ensureModuleProgram,
  ensureTool,
  KUBERNETES,
  moduleFolder,
  type ModuleProgram
} from '../chart/tools.ts'
import { ensureController } from './controller-build.ts'

export type Kubernetes = (typeof KUBERNETES)[number]

export const [OLDEST, CURRENT] = KUBERNETES
/** WatchList needs at least 3.4.25 or 3.5.8. */
const ETCD_VERSION = 'v3.7.3'

export const ETCD = join(CACHE, 'bin', `etcd-${ETCD_VERSION}`)

/** Kubernetes has its staging modules in its own repository; an outside build must name their releases. */
function kubernetesModule(version: Kubernetes): string[] {
  const theirs = readFileSync(join(moduleFolder(`k8s.io/kubernetes@${version}`), 'go.mod'), 'utf8')
  const staged = [...theirs.matchAll(/^\t(k8s\.io\/\S+) => \.\/staging\//gm)].map(([, module]) => module)
  const released = version.replace(/^v1/, 'v0')
  return [
    `require k8s.io/kubernetes ${version}`,
    ...staged.map(name => `replace ${name} => ${name} ${released}`)
  ]
}

/** Without the version, the server reports v0.0.0-master, and charts that require a version refuse it. */
function stampedVersion(version: Kubernetes): string {
  const [major, minor] = version.slice(1).split('.')
  const stamp = '-X k8s.io/component-base/version'
  return `${stamp}.gitVersion=${version} ${stamp}.gitMajor=${major} ${stamp}.gitMinor=${minor}`
}

/** The path of a Kubernetes program, once it is built. */
export function kubernetesPath(name: string, version: Kubernetes = CURRENT): string {
  return join(CACHE, 'bin', `${name}-${version}`)
}

/** How to build a program of Kubernetes' `cmd/`. */
export const kubernetesProgram = (name: string, version: Kubernetes = CURRENT): ModuleProgram => ({
  path: kubernetesPath(name, version),
  module: () => kubernetesModule(version),
  what: `k8s.io/kubernetes/cmd/${name}`,
  linkerFlags: stampedVersion(version)
})

const ETCD_MAIN = `package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`

/** @throws Error with Go's output, if one cannot be built */
export function ensureControlPlane(): void {
  ensureModuleProgram({
    path: ETCD,
    module: () => [`require go.etcd.io/etcd/server/v3 ${ETCD_VERSION}`],
    main: ETCD_MAIN,
    what: '.'
  })
  ensureModuleProgram(kubernetesProgram('kube-apiserver'))
}

if (import.meta.main) {
  ensureTool('helm')
  ensureControlPlane()
  ensureModuleProgram(kubernetesProgram('kube-apiserver', OLDEST))
  ensureController()
}
