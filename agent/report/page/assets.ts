import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** One file of the page, as it is sent. */
export interface Asset {
  readonly body: Uint8Array<ArrayBuffer>
  readonly gzip: Uint8Array<ArrayBuffer> | undefined
  readonly type: string
}

/** By file name: `index.html`, `login.html`, and the files that they load, whose names contain a content hash. */
export type Assets = ReadonlyMap<string, Asset>

/** Where `npm run build:dashboard` puts the page. */
const BUILT_AT = fileURLToPath(new URL('../../../dist/dashboard/', import.meta.url))

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml'
}

/** Reads the built page once: a request never touches the file system. `undefined` if it has not been built. */
export function loadAssets(folder = BUILT_AT): Assets | undefined {
  try {
    const names = readdirSync(folder)
    const read = (name: string) => new Uint8Array(readFileSync(join(folder, name)))
    const assets = names.flatMap((name): [string, Asset][] => {
      const type = TYPES[name.split('.').at(-1) ?? '']
      if (type === undefined) return []
      return [
        [
          name,
          { body: read(name), gzip: names.includes(`${name}.gz`) ? read(`${name}.gz`) : undefined, type }
        ]
      ]
    })
    return assets.some(([name]) => name === 'index.html') ? new Map(assets) : undefined
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw err
  }
}
