import { mkdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext, type Page } from 'playwright-core'

const PROGRAM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync'
]

/** The folder for screenshots: to look at, and for the README. */
export const SHOTS = process.env['DASHBOARD_SHOTS'] ?? join(tmpdir(), 'apisix-drain-dashboard')

export interface Browser {
  /** Opens a new page, and collects all errors of the page and its console. */
  open(url: string, options?: { scheme?: 'light' | 'dark'; width?: number; height?: number }): Promise<Opened>
  close(): Promise<void>
}

export interface Opened {
  readonly page: Page
  readonly complaints: string[]
  /** Requests to any server except the agent. */
  readonly foreign: string[]
}

export async function startBrowser(): Promise<Browser> {
  const profile = await mkdtemp(join(tmpdir(), 'apisix-drain-chromium-'))
  mkdirSync(SHOTS, { recursive: true })
  const context: BrowserContext = await chromium.launchPersistentContext(profile, {
    executablePath: PROGRAM,
    headless: true,
    args: FLAGS
  })
  return {
    async open(url, { scheme = 'light', width = 1440, height = 1000 } = {}) {
      const page = await context.newPage()
      const complaints: string[] = []
      const foreign: string[] = []
      page.on('pageerror', error => complaints.push(error.message))
      page.on('console', message => message.type() === 'error' && complaints.push(message.text()))
      page.on('request', request => {
        const { origin, protocol } = new URL(request.url())
        if (origin !== new URL(url).origin && protocol !== 'data:') foreign.push(request.url())
      })
      page.on('dialog', dialog => {
        complaints.push(`dialog: ${dialog.message()}`)
        void dialog.dismiss()
      })
      await page.emulateMedia({ colorScheme: scheme })
      await page.setViewportSize({ width, height })
      await page.goto(url)
      return { page, complaints, foreign }
    },
    async close() {
      await context.close()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    }
  }
}
