import Mocha from 'mocha'

/**
 * Mocha's own Spec report. Its last lines are for CI: one for each failed test (`scripts/tests/failures.ts` reads them), then
 * `N passed, N failed`. Skipped tests are named, and under CI they are failures: nothing is skipped silently.
 */
export default class Reporter extends Mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    const skipped = []
    const failed = []
    runner.on(Mocha.Runner.constants.EVENT_TEST_FAIL, (test, error) => failed.push(lineOf(test, error)))
    runner.on(Mocha.Runner.constants.EVENT_TEST_PENDING, test => skipped.push(test.fullTitle()))
    runner.once(Mocha.Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures } = runner.stats
      const mayNot = process.env.CI ? skipped.length : 0
      if (mayNot > 0) process.exitCode = 1
      for (const line of failed) console.log(`failed: ${line}`)
      for (const title of skipped) console.log(`${mayNot > 0 ? 'failed: skipped' : 'skipped'}: ${title}`)
      const also = skipped.length > 0 ? `, ${skipped.length} skipped` : ''
      console.log(`${passes} passed, ${failures + mayNot} failed${also}`)
    })
  }
}

/** The title, the first line of the message, and the line of the test at which it failed. */
function lineOf(test, error) {
  const [first] = String(error?.message ?? error).split('\n')
  const message = first
    .replace(/For async tests.*returning a Promise, ensure it resolves\. /, '')
    .replace(`${process.cwd()}/`, '')
  const place = /\btest\/[^\s():]+:\d+/.exec(error?.stack ?? '')?.[0] ?? ''
  return `${test.fullTitle()}: ${message}${place ? ` (${place})` : ''}`
}
