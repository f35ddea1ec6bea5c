export type { Config, GatewaySource } from './config/types.ts'
export type { Secret } from './config/secret.ts'
export { loadConfig, printConfig, type Loaded } from './config/load.ts'
