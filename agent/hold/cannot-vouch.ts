/** `Holds.hold` rejects with this if the agent turns out to have no basis for an answer: the hook gets 503 and falls back. */
export class CannotVouch extends Error {
  override readonly name = 'CannotVouch'
}
