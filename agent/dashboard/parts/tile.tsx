/** One number with its name, inside a `dl`. */
export function Tile({ label, value, note }: { label: string; value: string; note: string }) {
  return (
    <div class="tile">
      <dt>{label}</dt>
      <dd>
        <span class="value">{value}</span>
        <span class="quiet">{note}</span>
      </dd>
    </div>
  )
}
