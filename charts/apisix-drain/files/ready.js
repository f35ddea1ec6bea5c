// `helm test`: an agent is ready within a minute, or this says what it is missing.
const url = `${process.env.AGENT}/readyz`
const until = Date.now() + 60_000
let said = ''
for (;;) {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(5000) })
    said = `${answer.status} ${await answer.text()}`
    if (answer.ok) break
  } catch (err) {
    said = err.cause?.message ?? err.message
  }
  if (Date.now() > until) {
    console.error(`${url}: ${said}`)
    process.exit(1)
  }
  await new Promise(resolve => setTimeout(resolve, 1000))
}
console.log(`${url}: ${said}`)
