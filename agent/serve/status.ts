import type { Ack } from '../drain/ack.ts'

/**
 * The HTTP status of an answer. 503 where nothing is proved and the pod has been ending for less than the floor
 * (`drain.floor`): a grace that the reserve uses up, or a short `?timeout=`. There the caller's own sleep is worth more than
 * our answer, and only an error makes `curl -f … || sleep 5` run it. Once the floor is over a sleep would prove nothing either,
 * and only take the time from the application.
 */
export const statusOf = (
  { result, evidence }: Pick<Ack, 'result' | 'evidence'>,
  endingForMs: number,
  floorMs: number
): 200 | 503 => (result === 'deadline' && evidence === 'none' && endingForMs < floorMs ? 503 : 200)
