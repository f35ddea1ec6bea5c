import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/** The folder from which the agent serves the page. Not in git: `npm run build:dashboard`, and each script that needs it, make it. */
export const BUILT_AT = join(import.meta.dirname, '../dist/dashboard')

const SOURCES = join(import.meta.dirname, '../agent')
const STAMP = 'built-from.txt'
const WRONG_TOKEN = 'That is not the token.'

/** Builds the page if it is missing, or was built from other sources. Several processes may do so at once. */
export async function ensureDashboard(): Promise<void> {
  const sources = sourcesHash()
  if (read(join(BUILT_AT, STAMP)) !== sources) await buildDashboard(sources)
}

async function buildDashboard(sources: string): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: ['main.tsx', 'login.ts', 'style.css'].map(name => join(SOURCES, 'dashboard', name)),
    outdir: BUILT_AT,
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'warning'
  })
  const output = (name: string) => {
    const found = outputFiles.find(({ path }) => path.endsWith(name))
    if (!found) throw new Error(`the bundler made no ${name}`)
    return Buffer.from(found.contents)
  }
  const page = (name: string) => readFileSync(join(SOURCES, 'dashboard', name), 'utf8')
  const icon = Buffer.from(page('icon.svg'))
  const names = {
    SCRIPT: named('page', output('main.js'), 'js'),
    LOGIN: named('login', output('login.js'), 'js'),
    STYLE: named('page', output('style.css'), 'css'),
    ICON: named('icon', icon, 'svg')
  }
  const linked = (text: string) =>
    text.replaceAll(/SCRIPT|LOGIN|STYLE|ICON/g, name => names[name as keyof typeof names])
  const login = linked(page('login.html'))
  mkdirSync(BUILT_AT, { recursive: true })
  put(names.SCRIPT, output('main.js'))
  put(names.LOGIN, output('login.js'))
  put(names.STYLE, output('style.css'))
  put(names.ICON, icon)
  put('login.html', Buffer.from(login.replace('PROBLEM', '')))
  put('login-failed.html', Buffer.from(login.replace('PROBLEM', WRONG_TOKEN)))
  put('index.html', Buffer.from(linked(page('index.html'))))
  const kept = new Set([...Object.values(names), 'login.html', 'login-failed.html', 'index.html'])
  for (const name of globSync('*', { cwd: BUILT_AT })) {
    if (!kept.has(name.replace(/\.gz$/, ''))) rmSync(join(BUILT_AT, name), { force: true })
  }
  // Written last: a page without this stamp is built again.
  put(STAMP, Buffer.from(sources))
}

const hash = (content: Uint8Array) => createHash('sha256').update(content).digest('hex').slice(0, 16)
const named = (name: string, content: Uint8Array, extension: string) =>
  `${name}-${hash(content)}.${extension}`

/** Writes a file and its gzipped copy. A rename puts each in place, because an agent that starts now must not read half a file. */
function put(name: string, content: Uint8Array): void {
  for (const [path, bytes] of [
    [`${name}.gz`, gzipSync(content, { level: 9 })],
    [name, content]
  ] as const) {
    const whole = join(BUILT_AT, path)
    writeFileSync(`${whole}.${process.pid}`, bytes)
    renameSync(`${whole}.${process.pid}`, whole)
  }
}

/** Returns the hash of all inputs of the bundle: the page, the code that it shares with the agent, the locked packages, and this script. */
function sourcesHash(): string {
  const files = globSync('{dashboard,report/snapshot,rules,base}/**/*.{ts,tsx,css,html,svg}', {
    cwd: SOURCES
  }).sort()
  const all = createHash('sha256')
  for (const file of files) all.update(file).update(readFileSync(join(SOURCES, file)))
  for (const file of ['package-lock.json', 'scripts/dashboard.ts']) {
    all.update(readFileSync(join(import.meta.dirname, '..', file)))
  }
  return all.digest('hex')
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

if (import.meta.main) await ensureDashboard()
