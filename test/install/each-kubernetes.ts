import { KUBERNETES } from '../chart/tools.ts'
import type { Kubernetes } from './build.ts'

/** Runs the tests on the oldest Kubernetes that the chart supports, and on a current one. */
export function onEachKubernetes(title: string, tests: (version: Kubernetes) => void): void {
  for (const version of KUBERNETES) describe(`${title}, Kubernetes ${version}`, () => tests(version))
}
