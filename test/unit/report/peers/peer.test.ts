import { createServer, type Server, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createBook } from '../../../../agent/report/peers/book.ts'
import { startPeer, type Peer } from '../../../../agent/report/peers/peer.ts'
import { until } from '../../../build/apisix.ts'
import { manualClock, type ManualClock } from '../../../build/manual-clock.ts'
import { memoryLog } from '../../../build/serve.ts'
import { briefOf, drainOf } from '../../../build/shared.ts'

/** In these tests the other agent is a server, and the test sets its answers. */
describe('another agent (D7)', () => {
  let server: Server
  let answer: (response: ServerResponse, url: URL, cookie: string | undefined) => void
  let peer: Peer
  let clock: ManualClock
  let asked: URL[]
  let heard: string[][]
  let lines: Record<string, unknown>[]

  beforeEach(async () => {
    asked = []
    heard = []
    server = createServer((request, response) => {
      const url = new URL(request.url ?? '', 'http://agent')
      asked.push(url)
      answer(response, url, request.headers.cookie)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterEach(async () => {
    await peer.stop()
    server.closeAllConnections()
    server.close()
  })

  const begin = (id = 'own') => {
    clock = manualClock()
    const memory = memoryLog()
    lines = memory.lines
    peer = startPeer({
      address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
      id,
      pass: () => 'session=short',
      heard: (_, drains) => heard.push([...drains.keys()]),
      clock,
      log: memory.log
    })
  }
  const book = createBook()
  const share = (response: ServerResponse, url: URL, id = 'b1', drains = [drainOf('web-1')]) =>
    response.end(
      JSON.stringify(
        book.share(
          { ...briefOf(id, { drains }), at: clock.now() },
          url.searchParams.get('of') === id ? Number(url.searchParams.get('after')) : 0
        )
      )
    )
  /** Moves the clock until the peer counts as lost, and returns its last view. */
  const lost = async () => {
    for (const end = performance.now() + 15_000; peer.view()?.link !== 'lost' && performance.now() < end;) {
      const before = asked.length
      clock.advance(1000)
      await new Promise(resolve => setTimeout(resolve, 5))
      expect(asked.length - before).to.be.at.most(1)
    }
    return peer.view()
  }
  const again = async () => {
    const before = heard.length
    await until('it sleeps', () => clock.pending > 0)
    clock.advance(1000)
    await until('it heard again', () => heard.length > before)
  }

  it('is asked with a pass, and only for changes; drains that it dropped are forgotten', async () => {
    let cookie: string | undefined
    let drains = [drainOf('web-1'), drainOf('web-2')]
    answer = (response, url, shown) => {
      cookie = shown
      share(response, url, 'b1', drains)
    }
    begin()
    await until('it heard', () => heard.length > 0)
    expect(cookie).to.equal('session=short')
    expect(asked[0]?.searchParams.get('after')).to.equal('0')
    expect(peer.view()).to.include({ id: 'b1', name: 'b1', link: 'live', problem: '', heardAt: 1_000_000 })
    drains = [drainOf('web-2')]
    await again()
    expect(asked[1]?.searchParams.get('of')).to.equal('b1')
    expect(Number(asked[1]?.searchParams.get('after'))).to.be.above(0)
    expect(heard).to.deep.equal([['web-1', 'web-2'], ['web-2']])
  })

  it('that has restarted is asked for everything', async () => {
    let id = 'b1'
    answer = (response, url) => share(response, url, id, [drainOf(`of-${id}`)])
    begin()
    await until('it heard', () => heard.length > 0)
    id = 'b2'
    await again()
    expect(heard.at(-1)).to.deep.equal(['of-b2'])
    expect(peer.view()).to.include({ id: 'b2', link: 'live' })
  })

  it('that is this agent itself is not asked again, and not shown', async () => {
    answer = (response, url) => share(response, url, 'own')
    begin('own')
    await until('it was asked', () => asked.length > 0)
    await peer.stop()
    expect(peer.view()).to.equal(undefined)
    expect(heard).to.deep.equal([])
    expect(clock.pending).to.equal(0)
  })

  it('is lost after ten seconds, not at once; its drains stay, and it is logged once', async () => {
    let refuses = false
    answer = (response, url) => (refuses ? response.destroy() : share(response, url))
    begin()
    await until('it heard', () => heard.length > 0)
    refuses = true
    await until('it sleeps', () => clock.pending > 0)
    clock.advance(1000)
    await until('it was asked again', () => asked.length > 1)
    expect(peer.view()?.link).to.equal('live')
    const view = await lost()
    expect(view?.problem).to.match(
      /^no answer from 127\.0\.0\.1:\d+ \(ECONNRESET\): check that an agent runs there/
    )
    expect(view).to.include({ name: 'b1', version: '0.0.0', heardAt: 1_000_000, leads: false })
    expect([...peer.drains().keys()]).to.deep.equal(['web-1'])
    await until('it is logged', () => lines.length > 0)
    refuses = false
    await again()
    expect(peer.view()?.link).to.equal('live')
    await until('its return is logged', () => lines.length > 1)
    expect(lines.map(({ msg }) => msg)).to.deep.equal([
      'another agent is lost: the dashboard shows its last known state',
      'the other agent answers again'
    ])
  })

  const failures: [string, (response: ServerResponse) => void, RegExp][] = [
    [
      'refuses',
      response => response.writeHead(401).end(),
      /refuses this agent: give all agents the same token/
    ],
    ['is too old', response => response.writeHead(404).end(), /does not share its state/],
    ['fails', response => response.writeHead(500).end(), /answers 500: look at the log/],
    ['is no agent', response => response.end('<html>'), /does not answer as an agent does/],
    ['redirects', response => response.writeHead(302, { location: '/' }).end(), /answers 302/]
  ]
  for (const [what, how, expected] of failures) {
    it(`that ${what} is shown with the reason and what to change`, async () => {
      answer = how
      begin()
      expect(peer.view()).to.equal(undefined)
      const view = await lost()
      expect(view).to.include({ version: null, link: 'lost' })
      expect(view?.problem).to.match(expected)
    })
  }

  it('that sends too much is cut off', async () => {
    const chunk = 'x'.repeat(1024 * 1024)
    answer = response => {
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      }
      response.on('drain', more)
      more()
    }
    begin()
    await until('it sleeps', () => clock.pending > 0)
    clock.advance(11_000)
    expect(peer.view()?.problem).to.match(/answers with more than 16 MiB: its state is left out$/)
  })

  it('that is silent is given up after two seconds', async () => {
    answer = () => {}
    begin()
    await until('it sleeps', () => clock.pending > 0)
    clock.advance(11_000)
    expect(peer.view()?.problem).to.include('(nothing within 2 s)')
  })

  it('of another version is named as such, and its state is left out', async () => {
    answer = response => response.end(JSON.stringify({ version: 99, drains: 'of another form' }))
    begin()
    await until('it sleeps', () => clock.pending > 0)
    expect(peer.view()).to.include({ link: 'other' })
    expect(peer.view()?.problem).to.match(
      /^its state has version 99, and this agent reads version 3: update the older/
    )
    expect(heard).to.deep.equal([])
  })

  it('whose clock differs is live, and the page shows the difference', async () => {
    for (const [by, words] of [
      [4000, '4.0 s ahead of'],
      [-4000, '4.0 s behind']
    ] as const) {
      answer = response =>
        response.end(JSON.stringify(book.share({ ...briefOf('b1'), at: clock.now() + by }, 0)))
      begin()
      await until('it heard', () => heard.length > 0)
      expect(peer.view()?.link).to.equal('live')
      expect(peer.view()?.problem).to.include(`its clock is ${words} this agent's`)
      expect(peer.ahead()).to.equal(by)
      expect(peer.view()?.startedAt, 'by this clock').to.equal(-by)
      await peer.stop()
      heard = []
    }
  })
})
