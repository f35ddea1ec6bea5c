import { clean } from '../base/read.ts'
import { systemClock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import { examine, formatDiagnosis } from './doctor.ts'
import { doctorChecks } from './wire-checks.ts'
import { createAdminApi } from '../gateway/apisix/admin-api.ts'
import { createBarrierClient } from '../gateway/apisix/barrier-api.ts'
import { createControlReader } from '../gateway/apisix/control-api.ts'
import { createConnection } from '../kubernetes/transport/connection.ts'
import { loadCredentials } from '../kubernetes/transport/credentials.ts'
import { adminOptions, barrierOptions, controlOptions, credentialSource } from '../start/wire.ts'

/**
 * `apisix-drain doctor`: runs every check with the agent's own clients and prints the findings. Returns the exit code:
 * 0 if no check failed.
 *
 * @throws Error when the Kubernetes credentials cannot be read
 */
export async function diagnose(config: Config, json: boolean): Promise<number> {
  const clock = systemClock
  const connection = createConnection(loadCredentials(credentialSource(config.kubernetes), clock), clock)
  const admin = createAdminApi(adminOptions(config.apisix.admin))
  const barrier = config.apisix.barrier && createBarrierClient(barrierOptions(config.apisix.barrier))
  try {
    const readGateway = createControlReader(controlOptions(config.apisix.control, clock))
    const checks = doctorChecks(config, { connection, admin, readGateway, barrier, clock })
    const diagnosis = await examine(checks, clock)
    process.stdout.write(clean(json ? `${JSON.stringify(diagnosis)}\n` : formatDiagnosis(diagnosis)))
    return diagnosis.healthy ? 0 : 1
  } finally {
    admin.close()
    barrier?.close()
    await connection.close()
  }
}
