/** Run as a script it builds kube-apiserver and etcd from their own Go modules into the cache, once for each version. */
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

const [, VERSION] = KUBERNETES
/** WatchList needs 3.4.25 or 3.5.8 at least. */
const ETCD_VERSION = 'v3.7.3'

export const ETCD = join(CACHE, 'bin', `etcd-${ETCD_VERSION}`)
export const API_SERVER = kubernetesPath('kube-apiserver')

/** Kubernetes takes its staging modules from folders beside it; whoever builds it from outside names the released ones. */
function kubernetesModule(): string[] {
  const theirs = readFileSync(join(moduleFolder(`k8s.io/kubernetes@${VERSION}`), 'go.mod'), 'utf8')
  const staged = [...theirs.matchAll(/^\t(k8s\.io\/\S+) => \.\/staging\//gm)].map(([, module]) => module)
  const released = VERSION.replace(/^v1/, 'v0')
  return [
    `require k8s.io/kubernetes ${VERSION}`,
    ...staged.map(name => `replace ${name} => ${name} ${released}`)
  ]
}

/** Without it the server calls itself v0.0.0-master, and charts that ask for a version refuse it. */
function stampedVersion(): string {
  const [major, minor] = VERSION.slice(1).split('.')
  const stamp = '-X k8s.io/component-base/version'
  return `${stamp}.gitVersion=${VERSION} ${stamp}.gitMajor=${major} ${stamp}.gitMinor=${minor}`
}

/** Where that program of Kubernetes is, once it is built. */
export function kubernetesPath(name: string): string {
  return join(CACHE, 'bin', `${name}-${VERSION}`)
}

/** How a program of `cmd/` in Kubernetes is built. */
export const kubernetesProgram = (name: string): ModuleProgram => ({
  path: kubernetesPath(name),
  module: kubernetesModule,
  what: `k8s.io/kubernetes/cmd/${name}`,
  linkerFlags: stampedVersion()
})

const ETCD_MAIN = `package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`

/** @throws Error with what Go said, when one cannot be built */
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
}
