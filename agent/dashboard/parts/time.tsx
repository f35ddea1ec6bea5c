import { ago, exactClock, fullMoment, moment } from '../model/format.ts'

interface TimeProps {
  /** In ms since the epoch, like `now`. */
  at: number
  now: number
  /** `exact`: with ms; `ago`: as an age. */
  as?: 'exact' | 'ago'
}

/** A time in the browser's zone. Its tooltip has the date, the ms and the zone. */
export function Time({ at, now, as }: TimeProps) {
  return (
    <time dateTime={new Date(at).toISOString()} title={fullMoment(at)}>
      {as === 'ago' ? ago(at, now) : as === 'exact' ? exactClock(at) : moment(at, now)}
    </time>
  )
}
