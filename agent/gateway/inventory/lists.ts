import type { AdminApi } from '../apisix/admin-api.ts'
import type { ListDocuments } from './documents.ts'
import type { ModeWatch } from './mode-watch.ts'

type Lists = Pick<AdminApi, 'list' | 'pageSize'>

/** The source of the inventory: the Admin API's collections, or the gateways' documents, depending on the mode. */
export function createLists(admin: Lists, documents: ListDocuments, mode: ModeWatch): Lists {
  return {
    get pageSize() {
      // A document comes as a whole, so there is no second page.
      return mode.current().mode === 'standalone' ? Infinity : admin.pageSize
    },
    async list(resource, page, signal) {
      // While the mode is unknown, the Admin API is asked too. If APISIX is standalone, this call fails, and does not return a wrong list.
      if (mode.current().mode !== 'standalone') return admin.list(resource, page, signal)
      const objects = await documents(resource, signal)
      return { total: objects.length, objects }
    }
  }
}
