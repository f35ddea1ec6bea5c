/** The error of `Holds.hold` if the agent turns out to have no basis for an answer. The hook gets 503 and falls back. */
export class CannotVouch extends Error {
  override readonly name = 'CannotVouch'
}
