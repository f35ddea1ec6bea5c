/** A field that filters the rows of a card. */
export function Search({
  what,
  placeholder,
  value,
  onSearch
}: {
  /** The kind of rows, for the label: `drains`. */
  readonly what: string
  readonly placeholder: string
  readonly value: string
  readonly onSearch: (value: string) => void
}) {
  return (
    <input
      type="search"
      placeholder={placeholder}
      aria-label={`Search ${what}`}
      value={value}
      onInput={event => onSearch(event.currentTarget.value)}
    />
  )
}
