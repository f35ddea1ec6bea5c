import { join } from 'node:path'
import { CACHE, ensureModuleProgram, moduleFolder } from '../chart/tools.ts'

const MODULE = 'github.com/apache/apisix-ingress-controller'
export const CONTROLLER_VERSION = 'v1.8.4'
export const PROGRAM = join(CACHE, 'bin', `apisix-ingress-controller-${CONTROLLER_VERSION}`)

/** @throws Error with the output of Go if the controller cannot be built */
export function ensureController(): void {
  ensureModuleProgram({
    path: PROGRAM,
    module: () => [`require ${MODULE} ${CONTROLLER_VERSION}`],
    what: MODULE,
    linkerFlags: `-X ${MODULE}/pkg/version._buildVersion=${CONTROLLER_VERSION}`
  })
}

/** Returns the folder of the controller's CRDs, in its module. */
export const kindsFolder = (): string =>
  join(moduleFolder(`${MODULE}@${CONTROLLER_VERSION}`), 'samples/deploy/crd/v1')
