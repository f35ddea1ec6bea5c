import { useState } from 'preact/hooks'
import type { Command } from '../model/commands.ts'

/** Commands with which the user can check the page by hand. */
export function Commands({ commands }: { commands: readonly Command[] }) {
  return (
    <ul class="commands">
      {commands.map(({ shows, line }) => (
        <li key={line}>
          <span class="quiet">{shows}</span>
          <CopyLine line={line} />
        </li>
      ))}
    </ul>
  )
}

function CopyLine({ line }: { line: string }) {
  const [copied, set] = useState(false)
  const copy = () => {
    // If the page has no https, the browser offers no clipboard. The user can still select the text.
    void navigator.clipboard?.writeText(line).then(() => set(true))
  }
  return (
    <div class="command">
      <code>{line}</code>
      <button type="button" class="ghost-button" onClick={copy}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}
