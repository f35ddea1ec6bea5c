import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import { isOpen } from './lanes.ts'
import type { Sentence } from './sentence.ts'

/** The title of the browser's tab: it shows the state while another tab is open. */
export function titleOf(snapshot: Snapshot | undefined, level: Sentence['level']): string {
  const waiting = snapshot?.drains.filter(isOpen).length ?? 0
  const marks = [...(level === 'bad' ? ['!'] : []), ...(waiting > 0 ? [`${waiting} waiting`] : [])]
  return `${marks.length > 0 ? `(${marks.join(' ')}) ` : ''}apisix-drain`
}
