interface DownloadProps {
  /** The name of the file, without date and extension. */
  name: string
  disabled: boolean
  /** Called only when the user asks for the file. */
  csv: () => string
}

/** Saves the shown data as a CSV file. */
export function Download({ name, disabled, csv }: DownloadProps) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([csv()], { type: 'text/csv;charset=utf-8' }))
    const link = document.createElement('a')
    link.href = url
    link.download = `apisix-drain-${name}-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}Z.csv`
    link.click()
    URL.revokeObjectURL(url)
  }
  return (
    <button
      type="button"
      class="ghost-button"
      disabled={disabled}
      onClick={save}
      aria-label={`Save ${name} as CSV`}
    >
      CSV
    </button>
  )
}
