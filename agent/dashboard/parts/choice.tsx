interface ChoiceProps<T extends string> {
  label: string
  options: readonly T[]
  value: T
  onChange: (value: T) => void
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }

/** A choice of a few options, all of them visible. The group is one tab stop; arrow keys move between the options. */
export function Choice<T extends string>({ label, options, value, onChange }: ChoiceProps<T>) {
  const move = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const step = STEPS[event.key]
    if (step === undefined) return
    event.preventDefault()
    const buttons = [...event.currentTarget.querySelectorAll('button')]
    const at = buttons.findIndex(button => button === document.activeElement)
    buttons.at((at + step) % buttons.length)?.focus()
  }
  return (
    <div class="choice" role="toolbar" aria-label={label} onKeyDown={move}>
      <span class="what" aria-hidden="true">
        {label.toLowerCase()}
      </span>
      {options.map(option => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          tabIndex={option === value ? 0 : -1}
          onClick={() => onChange(option)}
        >
          {option}
        </button>
      ))}
    </div>
  )
}
