/** Returns the slope of the least-squares line through these points, or 0 for fewer than two points. */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [mx, my] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))]
  const square = points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0)
  return points.length < 2 || square === 0
    ? 0
    : points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0) / square
}
