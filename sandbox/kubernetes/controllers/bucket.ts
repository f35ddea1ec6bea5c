/** A token bucket, as in client-go's flow control: `burst` at once, then `qps` a second. */
export interface Rate {
  readonly qps: number
  readonly burst: number
}

/** The rate of each controller in kube-controller-manager. */
export const KCM_RATE: Rate = { qps: 20, burst: 30 }

export interface Bucket {
  readonly tokens: number
  /** ms since the epoch. */
  readonly at: number
}

/** Takes a token, on credit if the bucket is empty. The caller must then wait `waitMs`. Pure. */
export function take(
  bucket: Bucket,
  rate: Rate,
  now: number
): { readonly bucket: Bucket; readonly waitMs: number } {
  const refilled = Math.min(bucket.tokens + (Math.max(now - bucket.at, 0) * rate.qps) / 1000, rate.burst)
  const tokens = refilled - 1
  return {
    bucket: { tokens, at: Math.max(now, bucket.at) },
    waitMs: tokens >= 0 ? 0 : (-tokens * 1000) / rate.qps
  }
}
