import { useEffect, useState } from 'preact/hooks'

export type Theme = 'light' | 'dark'

const KEY = 'apisix-drain-theme'
const dark = matchMedia('(prefers-color-scheme: dark)')

/** The theme that the user chose in this browser; `undefined`: no choice, so the page follows the system. */
const chosen = (): Theme | undefined => {
  const theme = localStorage.getItem(KEY)
  return theme === 'light' || theme === 'dark' ? theme : undefined
}

export function useTheme(): readonly [Theme, () => void] {
  const [theme, set] = useState<Theme>(() => chosen() ?? (dark.matches ? 'dark' : 'light'))
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme
  }, [theme])
  useEffect(() => {
    const follow = () => chosen() === undefined && set(dark.matches ? 'dark' : 'light')
    dark.addEventListener('change', follow)
    return () => dark.removeEventListener('change', follow)
  }, [])
  const toggle = () => {
    const next = theme === 'dark' ? 'light' : 'dark'
    localStorage.setItem(KEY, next)
    set(next)
  }
  return [theme, toggle]
}
