import { versions } from '../../../scripts/version.ts'

const REGISTRY = 'apisix-drain.test'

/** No such registry exists, so a missing image cannot be pulled by mistake. */
export const PAUSE = `${REGISTRY}/pause:1`
/** The app of `test/cluster/app`, with a shell and curl. */
export const APP = `${REGISTRY}/app:1`
/** The same app, in an image without any other program. */
export const APP_WITHOUT_SHELL = `${REGISTRY}/app-without-shell:1`
/** The static helper, in an image without any other program. README.md names the image; the registry is `docker.io/library`. */
export const HELPER = `docker.io/library/apisix-drain-hook:${versions()[0]?.version}`
/** nginx with the plugin, and the stand-in for APISIX's Admin API. */
export const GATEWAY = `${REGISTRY}/gateway:1`
/** Returns the chart's default image of the agent, with the registry under which containerd looks for it. */
export const agentImage = (appVersion: string): string => `docker.io/library/apisix-drain:${appVersion}`
