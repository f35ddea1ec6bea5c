import { z } from 'zod'
import { apisix } from './apisix-section.ts'
import { drain } from './drain-section.ts'
import { ghosts, inject, kubernetes, leader, log, sync } from './sections.ts'
import { serve } from './serve-section.ts'

/** The configuration file, before any value is derived from it. docs/config.md is generated only from this. */
export const schema = z.strictObject({
  kubernetes: kubernetes.prefault({}).describe('The Kubernetes API server.'),
  apisix: apisix.describe('Apache APISIX.'),
  drain: drain.prefault({}).describe('What a drain waits for.'),
  serve: serve.prefault({}).describe('The HTTP server of the agent.'),
  leader: leader.prefault({}).describe('Which of several agents leads.'),
  sync: sync.prefault({}).describe('Upstreams that follow Services.'),
  ghosts: ghosts.prefault({}).describe('Nodes whose pods are gone.'),
  inject: inject.prefault({}).describe('The webhook that adds hooks to pods.'),
  log: log.prefault({}).describe('The log.')
})

/** The settings as the user wrote them, with the defaults for all others. */
export type Settings = z.infer<typeof schema>
