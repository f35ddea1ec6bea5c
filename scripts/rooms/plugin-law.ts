/**
 * The rooms of the plugin, in order: a file requires files of its own room and of rooms above it. These rooms are not folders: a gateway
 * mounts the files from a ConfigMap, which has no folders (plugin-config/helm-values.yaml). The texts go to docs/rooms.md.
 */
export const PLUGIN_LAW: Readonly<Record<string, { readonly holds: string; readonly files: string }>> = {
  host: {
    holds: 'all that needs ffi: clock, shared memory, processes, datagrams',
    files: 'host wake'
  },
  tools: {
    holds: 'serves all others: addresses, JSON, settings',
    files: 'address json settings'
  },
  counts: {
    holds: 'requests in flight and other counters, in memory that all workers share',
    files: 'cells inflight kinds totals'
  },
  entries: {
    holds: 'the deny-list, its copy in each worker, and how entries arrive',
    files: 'copy entries entry fetch request successors ways'
  },
  word: {
    holds: "the worker's word: the places in which it could choose an address",
    files: 'affected names nodes places source speaker word word_store word_text'
  },
  pick: {
    holds: 'a request: which node it may use, and what is counted',
    files: 'install offer pick plan present request_state wrappers'
  },
  parts: {
    holds: 'all parts of one nginx process, and the other workers',
    files: 'l4 runtime workers'
  },
  api: {
    holds: 'the Barrier API, and how APISIX loads the plugin',
    files: 'answers api hook'
  }
}

const REQUIRE = /require\("apisix\.drain\.(\w+)"\)/g

/** Returns one text for each breach of the law of the plugin. @param sources the text of each file, by its name without `.lua` */
export function pluginProblems(sources: ReadonlyMap<string, string>, law = PLUGIN_LAW): readonly string[] {
  const rooms = Object.values(law).map(({ files }) => files.split(' '))
  const roomOf = (file: string) => rooms.findIndex(files => files.includes(file))
  const listed = rooms.flat()
  return [
    ...[...sources.keys()].filter(file => roomOf(file) < 0).map(file => `${file}.lua: in no room`),
    ...listed.filter(file => !sources.has(file)).map(file => `${file}.lua: in a room, and does not exist`),
    ...listed.filter((file, i) => listed.indexOf(file) < i).map(file => `${file}.lua: in two rooms`),
    ...[...sources]
      .filter(
        ([file, text]) => text.includes('require("ffi")') && !law['host']?.files.split(' ').includes(file)
      )
      .map(([file]) => `${file}.lua uses ffi, outside of the room host`),
    ...[...sources].flatMap(([file, text]) =>
      [...text.matchAll(REQUIRE)]
        .map(([, to = '']) => to)
        .filter(to => roomOf(to) > roomOf(file))
        .map(to => `${file}.lua requires ${to}.lua, of a room below its own`)
    )
  ]
}
