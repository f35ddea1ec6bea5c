import { isDenied } from '../../base/errors.ts'
import type { AdminApi } from '../apisix/admin-api.ts'

/** The mode of this APISIX, which decides whether the agent may write at all. */
export type Mode = 'etcd' | 'standalone' | 'unreachable' | 'denied'

/** Asks the Admin API for the mode. Never rejects. `why` is empty for `etcd`. */
export async function detectMode(
  admin: Pick<AdminApi, 'standalone'>,
  signal?: AbortSignal
): Promise<{ readonly mode: Mode; readonly why: string }> {
  try {
    return (await admin.standalone(signal)) === undefined
      ? { mode: 'etcd', why: '' }
      : {
          mode: 'standalone',
          why: 'API-driven standalone: every gateway holds its own whole document, so it is never written here'
        }
  } catch (error) {
    return { mode: isDenied(error) ? 'denied' : 'unreachable', why: (error as Error).message }
  }
}
