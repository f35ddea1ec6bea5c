import { useCallback, useEffect, useState } from 'preact/hooks'
import { hashOf, viewOf, type ViewProps } from './model/view.ts'

/** The view, which is kept in the address of the page. The browser's Back button undoes a choice, and a link opens the same view. */
export function useView(): ViewProps {
  const [view, set] = useState(() => viewOf(location.hash))
  useEffect(() => {
    const read = () => set(viewOf(location.hash))
    // Back, Forward and an address typed by hand all fire `popstate`.
    addEventListener('popstate', read)
    return () => removeEventListener('popstate', read)
  }, [])
  const onView = useCallback<ViewProps['onView']>((differs, typed) => {
    const next = { ...viewOf(location.hash), ...differs }
    const hash = hashOf(next)
    const url = hash === '' ? location.pathname + location.search : `#${hash}`
    if (typed) history.replaceState(null, '', url)
    else history.pushState(null, '', url)
    set(next)
  }, [])
  return { view, onView }
}
