import { CodedError } from '../../base/errors.ts'
import type { AdminApi } from '../apisix/admin-api.ts'
import type { ModeWatch } from './mode-watch.ts'

/** The last check before a write. In standalone mode every write is refused, whichever part of the agent requests it. */
export function guardWrites(admin: AdminApi, mode: Pick<ModeWatch, 'current'>): AdminApi {
  const allow = (what: string): void => {
    if (mode.current().mode === 'standalone') throw new CodedError('ADMIN_STANDALONE', what)
  }
  return {
    ...admin,
    async patch(resource, id, body, signal) {
      allow(`PATCH ${resource}/${id}`)
      return admin.patch(resource, id, body, signal)
    },
    async put(resource, id, body, signal) {
      allow(`PUT ${resource}/${id}`)
      return admin.put(resource, id, body, signal)
    }
  }
}
