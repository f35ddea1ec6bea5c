/** Run as a script it builds kube-apiserver and etcd from their own Go modules into the cache, once for each version. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { CACHE, ensureTool, go, KUBERNETES, moduleFolder } from '../chart/tools.ts'

const [, VERSION] = KUBERNETES
/** WatchList needs 3.4.25 or 3.5.8 at least. */
const ETCD_VERSION = 'v3.7.3'

export const ETCD = join(CACHE, 'bin', `etcd-${ETCD_VERSION}`)
export const API_SERVER = join(CACHE, 'bin', `kube-apiserver-${VERSION}`)

/** Neither can be installed by `go install`: their modules replace others. A module of ours says by which. */
const PROGRAMS = {
  etcd: {
    path: ETCD,
    module: () => [`require go.etcd.io/etcd/server/v3 ${ETCD_VERSION}`],
    main: 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n',
    what: '.',
    flags: '-s -w'
  },
  'kube-apiserver': {
    path: API_SERVER,
    module: kubernetesModule,
    main: undefined,
    what: 'k8s.io/kubernetes/cmd/kube-apiserver',
    flags: `-s -w ${stampedVersion()}`
  }
} as const

function ensure(name: keyof typeof PROGRAMS): void {
  const { path, module, main, what, flags } = PROGRAMS[name]
  if (existsSync(path)) return
  const begun = Date.now()
  const folder = join(CACHE, 'build', basename(path))
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'go.mod'), ['module build', 'go 1.26.0', ...module(), ''].join('\n'))
  if (main) writeFileSync(join(folder, 'main.go'), main)
  console.log(`building ${basename(path)} into ${CACHE}`)
  go(['build', '-mod=mod', '-trimpath', `-ldflags=${flags}`, '-o', name, what], {}, folder)
  renameSync(join(folder, name), path)
  console.log(`built ${name} in ${Math.round((Date.now() - begun) / 1000)} s`)
}

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

if (import.meta.main) {
  ensureTool('helm')
  ensure('etcd')
  ensure('kube-apiserver')
}
