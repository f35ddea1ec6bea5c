/** Formats numbers for people. The format is English in every locale, so that a quoted number looks the same on every screen. */

/** `0.4 ms`, `41 ms`, `1.84 s`, `25 s`, `60 s`, `3 min 05 s`, `2 h 10 min` */
export function formatMs(ms: number): string {
  if (ms < 0) return `−${formatMs(-ms)}`
  if (ms < 9.95) return `${trim(ms.toFixed(1))} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 9_995) return `${trim((ms / 1000).toFixed(2))} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return `${trim((ms / 1000).toFixed(1))} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`
}

/** An age as text, in whole seconds. */
export const formatAge = (ms: number): string => (ms < 500 ? '0 s' : formatMs(Math.round(ms / 1000) * 1000))

const two = (n: number) => String(n).padStart(2, '0')
const trim = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text)

/** `1 pod`, `3 pods`, `1,204 pods` */
export const count = (n: number, one: string, many = `${one}s`): string =>
  `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`

const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })
const LONG = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' })

/** `14:03:22`, in the browser's time zone. */
export const clock = (at: number): string => TIME.format(at)

/** `14:03:22.481`, in the browser's time zone. */
export const exactClock = (at: number): string =>
  `${clock(at)}.${String(Math.floor(at % 1000)).padStart(3, '0')}`

/** `14:03:22` today, `23 Nov, 14:03:22` on other days. */
export const moment = (at: number, now: number): string => {
  const day = DAY.format(at)
  return day === DAY.format(now) ? clock(at) : `${day.replace(/ \d+$/, '')}, ${clock(at)}`
}

/** `24 Nov 2026, 14:03:22 CET` */
export const wallClock = (at: number): string => LONG.format(at)

/** `24 Nov 2026, 14:03:22.481 CET` */
export const fullMoment = (at: number): string => wallClock(at).replace(clock(at), exactClock(at))

/** `3 s ago`. Clocks may disagree, so a time in the future counts as now. */
export const ago = (at: number, now: number): string =>
  `${formatMs(Math.max(0, Math.round((now - at) / 100) * 100))} ago`

/** A name in two parts. The second part is always shown whole, because generated names differ at their end. */
export function cutName(name: string): readonly [start: string, end: string] {
  const at = name.length > 14 ? name.length - 10 : name.length
  return [name.slice(0, at), name.slice(at)]
}
