/**
 * As a script, this file builds kube-apiserver and etcd from their Go modules into the cache: for the oldest Kubernetes that the
 * chart supports, and for a current one. It also builds the ingress controller.
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
/** The version of etcd. Kubernetes' WatchList needs at least 3.4.25 or 3.5.8. */
const ETCD_VERSION = 'v3.7.3'

export const ETCD = join(CACHE, 'bin', `etcd-${ETCD_VERSION}`)

/** Returns the lines of go.mod. Kubernetes' repository contains its staging modules; an outside build must name their releases. */
function kubernetesModule(version: Kubernetes): string[] {
  const theirs = readFileSync(join(moduleFolder(`k8s.io/kubernetes@${version}`), 'go.mod'), 'utf8')
  const staged = [...theirs.matchAll(/^\t(k8s\.io\/\S+) => \.\/staging\//gm)].map(([, module]) => module)
  const released = version.replace(/^v1/, 'v0')
  return [
    `require k8s.io/kubernetes ${version}`,
    ...staged.map(name => `replace ${name} => ${name} ${released}`)
  ]
}

/** Returns the linker flags that set the version. Without them the server reports v0.0.0-master, which charts refuse. */
function stampedVersion(version: Kubernetes): string {
  const [major, minor] = version.slice(1).split('.')
  const stamp = '-X k8s.io/component-base/version'
  return `${stamp}.gitVersion=${version} ${stamp}.gitMajor=${major} ${stamp}.gitMinor=${minor}`
}

/** Returns the path of a Kubernetes program. The file exists once it is built. */
export function kubernetesPath(name: string, version: Kubernetes = CURRENT): string {
  return join(CACHE, 'bin', `${name}-${version}`)
}

/** Returns how to build a program of Kubernetes' folder `cmd/`. */
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

/** @throws Error with Go's output if one of the programs cannot be built */
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
