import { runArm, type Arm, type ArmState } from './arms.ts'
import { hasAgent, type ArmName, type RunOptions } from './cli.ts'
import type { Progress } from './progress.ts'
import type { ArmDetail } from './report.ts'

/** Runs one arm after another, each in a world of its own. Leaves nothing running if it rejects. With `hold`, `held` is the last arm, still up: the caller closes its world. */
export async function runArms(options: RunOptions, progress: Progress, signal: AbortSignal) {
  const details: ArmDetail[] = []
  for (const [i, name] of options.arms.entries()) {
    const onState = (state: ArmState) => {
      // Printed before the rolling update, so that the user has time to open the dashboard.
      if (options.hold && state.dashboard)
        progress.done(`${'dashboard'.padEnd(NAME_WIDTH)}  ${state.dashboard}`)
      progress.update(line(name, state))
    }
    const arm = await runArm(name, options, onState, signal)
    details.push(arm.detail)
    progress.done(doneLine(arm.detail))
    if (options.hold && i === options.arms.length - 1) return { details, held: arm }
    await arm.world.close()
  }
  return { details, held: undefined }
}

const NAME_WIDTH = 17

function line(name: ArmName, { stage, load, rollout }: ArmState): string {
  const pods = rollout
    ? `  ${rollout.available}/${rollout.replicas} new, ${rollout.ending} ending, ${rollout.gone} gone`
    : ''
  const requests = load ? `  ${load.requests} requests, ${load.failed} failed` : ''
  return `${name.padEnd(NAME_WIDTH)}  ${stage}${pods}${requests}`
}

const doneLine = ({ name, requests, failed, rolloutMs }: ArmDetail) =>
  `${name.padEnd(NAME_WIDTH)}  rolled out in ${(rolloutMs / 1000).toFixed(1)} s  ${requests} requests, ${failed} failed`

/** Commands to try on a world that is left running. */
export function heldLines({ world, detail }: Arm): string[] {
  const account = `KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=${world.kubernetes.port}`
  const [first] = world.gateways.gateways
  const { admin } = world.gateways
  return [
    'Left running, without load. Ctrl-C ends it.',
    ...world.gateways.gateways.map(
      ({ name, proxy, control }) => `${name}    proxy ${proxy}  control ${control}`
    ),
    `admin       ${admin.url}  X-API-KEY: ${admin.key}`,
    `dashboard   ${world.agentUrl}/  (the agent, in the apisix-drain arm)`,
    `kubeconfig  ${world.kubeconfigFile}`,
    `try         curl ${first?.proxy}/`,
    `            curl -H 'X-API-KEY: ${admin.key}' ${admin.url}/apisix/admin/upstreams`,
    `            curl ${world.agentUrl}/api/state`,
    `            kubectl --kubeconfig ${world.kubeconfigFile} -n shop rollout restart deployment web`,
    ...(hasAgent(detail.name) ? ['doctor', 'status'] : []).map(
      command => `            ${account} node agent/main.ts ${command} --config ${world.files.config}`
    )
  ]
}
