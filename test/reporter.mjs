import Mocha from 'mocha'

/**
 * Mocha's own Spec report, with a last line for CI: `N passed, N failed`.
 * Skipped tests are named, and under CI they are failures: nothing is skipped silently.
 */
export default class Reporter extends Mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    const skipped = []
    runner.on(Mocha.Runner.constants.EVENT_TEST_PENDING, test => skipped.push(test.fullTitle()))
    runner.once(Mocha.Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures } = runner.stats
      for (const title of skipped) console.log(`skipped: ${title}`)
      const failed = failures + (process.env.CI ? skipped.length : 0)
      if (failed > failures) process.exitCode = 1
      console.log(`${passes} passed, ${failed} failed${skipped.length ? `, ${skipped.length} skipped` : ''}`)
    })
  }
}
