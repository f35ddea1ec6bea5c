import type { Grade } from './drain.ts'

/** Best first: the order is the meaning. */
export const GRADES: readonly Grade[] = ['barrier', 'observed', 'accepted', 'timer']

/** Whether `grade` is as good as `minimum` or better. Nothing reached is never enough. */
export function atLeast(grade: Grade | undefined, minimum: Grade): boolean {
  return grade !== undefined && GRADES.indexOf(grade) <= GRADES.indexOf(minimum)
}
