import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { architecture } from '../../../scripts/go.ts'
import type { Layer } from './layer.ts'

export interface Image {
  readonly name: string
  readonly layers: readonly Layer[]
  readonly entrypoint: readonly string[]
  readonly workingDir?: string
  readonly env?: readonly string[]
  /** `uid:gid`; root if it is left out. */
  readonly user?: string
}

const PATH = 'PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'

/** Writes an OCI image layout (version 1.0.0) for these images. Their layers are in `blobs` already. */
export function writeLayout(folder: string, blobs: string, images: readonly Image[]): void {
  const store = (content: object) => {
    const text = JSON.stringify(content)
    const digest = createHash('sha256').update(text).digest('hex')
    writeFileSync(join(blobs, digest), text)
    return { digest: `sha256:${digest}`, size: Buffer.byteLength(text) }
  }
  const manifests = images.map(image => ({
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    ...store(manifest(image, store(config(image)))),
    annotations: { 'io.containerd.image.name': image.name }
  }))
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }))
  writeFileSync(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
}

const manifest = ({ layers }: Image, config: object): object => ({
  schemaVersion: 2,
  mediaType: 'application/vnd.oci.image.manifest.v1+json',
  config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...config },
  layers: layers.map(layer => ({ mediaType: 'application/vnd.oci.image.layer.v1.tar', ...layer }))
})

const config = ({ layers, entrypoint, workingDir = '/', env = [], user = '' }: Image): object => ({
  architecture: architecture,
  os: 'linux',
  config: { Entrypoint: entrypoint, WorkingDir: workingDir, Env: [PATH, ...env], User: user },
  rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) }
})
