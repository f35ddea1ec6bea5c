/** `Holds.hold` rejects with this where the agent turns out to have nothing to go by: the hook gets 503 and falls back. */
export class CannotVouch extends Error {
  override readonly name = 'CannotVouch'
}
