import type { InjectSettings } from '../../../agent/hook/inject/inject.ts'

export const INJECT: InjectSettings = {
  hook: 'curl',
  url: 'http://a/v1/prestop',
  host: 'a',
  certificateFile: 'c',
  keyFile: 'k',
  volumes: []
}
