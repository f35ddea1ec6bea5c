/** `node test/cluster/images/make.ts FILE RUN` makes the suite's images from this machine's packages and this project, for that run. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { architecture, buildGo } from '../../../scripts/go.ts'
import { buildHook, hookPath } from '../../../scripts/hook.ts'
import { build, readDockerfile } from '../../chart/dockerfile.ts'
import { enterSuite } from '../shares.ts'
import { makeLayer, withLibraries } from './layer.ts'
import { writeLayout } from './layout.ts'
import { agentImage, APP, APP_WITHOUT_SHELL, GATEWAY, HELPER, PAUSE } from './names.ts'

const ROOT = join(import.meta.dirname, '../../..')

const SHELL = [
  '/bin/sh',
  '/usr/bin/curl',
  ...['cat', 'sleep', 'timeout', 'test', 'touch'].map(name => `/usr/bin/${name}`)
]
const NGINX_MODULES = ['ndk_http_module', 'ngx_http_lua_module'].map(
  name => `/usr/lib/nginx/modules/${name}.so`
)
const LUA = ['/usr/share/lua/5.1/ngx', '/usr/share/lua/5.1/resty', ...globSync('/usr/lib/*/lua/5.1/cjson.so')]
/** The project's own files in an image, below /app. */
const GATEWAY_SOURCES = [
  'package.json',
  'sandbox',
  'plugin-config',
  'test/plugin',
  'test/cluster/gateway',
  'node_modules/zod'
]

/** @throws Error with the output of the step that failed */
export async function makeImages(archive: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'images-'))
  const blobs = join(folder, 'layout/blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  try {
    const staged = async (name: string, fill: (root: string) => void) => {
      const root = join(folder, name)
      mkdirSync(root)
      fill(root)
      return makeLayer(blobs, root, readdirSync(root))
    }
    const sources = (paths: readonly string[]) => (root: string) => {
      for (const path of paths) cpSync(join(ROOT, path), join(root, 'app', path), { recursive: true })
    }
    // The page is built with what this project has installed. test/chart/image.test.ts installs it again.
    const instructions = readDockerfile(join(ROOT, 'Dockerfile')).map(({ name, text }) => ({
      name,
      text: text.replace(/^npm ci --ignore-scripts.*/, `ln -s ${join(ROOT, 'node_modules')}`)
    }))
    const last = (name: string) => instructions.findLast(instruction => instruction.name === name)?.text ?? ''

    const libraries = await makeLayer(blobs, '/', withLibraries([process.execPath]).slice(1))
    const node = await staged('node', root => {
      mkdirSync(join(root, 'usr/local/bin'), { recursive: true })
      cpSync(process.execPath, join(root, 'usr/local/bin/node'))
    })
    const users = await staged('users', root => {
      for (const made of ['etc', 'tmp']) mkdirSync(join(root, made))
      chmodSync(join(root, 'tmp'), 0o1777)
      writeFileSync(join(root, 'etc/group'), 'root:x:0:\n')
      writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\nnonroot:x:65532:65532::/:/bin/sh\n')
    })
    const shell = await makeLayer(blobs, '/', withLibraries(SHELL))
    const nginx = await makeLayer(blobs, '/', [
      ...withLibraries(['/usr/sbin/nginx', ...NGINX_MODULES]),
      ...LUA
    ])
    const app = await staged('app', root =>
      buildGo(join(ROOT, 'test/cluster/app'), join(root, 'app'), architecture)
    )
    const gateway = await staged('gateway', sources(GATEWAY_SOURCES))
    const agent = await makeLayer(blobs, join(build(instructions, ROOT, join(folder, 'agent')), '..'), [
      'app'
    ])

    const chart = readFileSync(join(ROOT, 'charts/apisix-drain/Chart.yaml'), 'utf8')
    const { appVersion } = parse(chart) as { appVersion: string }
    const helper = await staged('helper', root => {
      buildHook(architecture)
      cpSync(hookPath(architecture), join(root, 'apisix-drain-hook'))
    })

    const base = [libraries, node, users, shell]
    const workingDir = '/app'
    const user = '65532:65532'
    writeLayout(join(folder, 'layout'), blobs, [
      { name: PAUSE, layers: [users, shell], entrypoint: ['sleep', 'infinity'] },
      { name: APP, layers: [users, shell, app], entrypoint: ['/app'], user },
      { name: APP_WITHOUT_SHELL, layers: [users, app], entrypoint: ['/app'], user },
      { name: HELPER, layers: [helper], entrypoint: ['/apisix-drain-hook'], user },
      { name: GATEWAY, layers: [...base, nginx, gateway], entrypoint: ['node'], workingDir },
      {
        name: agentImage(appVersion),
        layers: [...base, agent],
        entrypoint: parse(last('ENTRYPOINT')) as string[],
        workingDir,
        user: last('USER'),
        env: [last('ENV')]
      }
    ])
    const part = `${archive}.part`
    const tar = ['--create', `--file=${part}`, `--directory=${folder}/layout`, '.']
    const { status, stderr } = spawnSync('tar', tar)
    if (status !== 0) throw new Error(`tar: ${stderr.toString()}`)
    // The rename makes the archive appear as a whole, because other processes wait for the file.
    renameSync(part, archive)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (import.meta.main) {
  const [, , archive = '', run = ''] = process.argv
  enterSuite(run)
  await makeImages(archive)
}
