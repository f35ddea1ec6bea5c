/* oxlint-disable no-underscore-dangle -- the names of the C API in wasm */
import { createRequire } from 'node:module'

/** As JSON; `undefined` is nil, and `null` the `js.null` of Lua. */
export type LuaValue = unknown

export interface RunningLua {
  /** Calls the global function `vm`. */
  call(...args: readonly LuaValue[]): string | number
}

/** What Lua calls. Its arguments are those of the caller, so each function states their types. */
export type Functions = Readonly<Record<string, (...args: never[]) => LuaValue>>

/** The part of the package `wasmoon-lua5.1` that is used. `state` and every place in memory is a number. */
interface Lua {
  readonly global: { readonly address: number }
  readonly luaApi: {
    readonly module: LuaModule
    lua_getfield(state: number, table: number, name: string): void
    lua_setfield(state: number, table: number, name: string): void
    luaL_ref(state: number, table: number): number
  }
  doStringSync(source: string): unknown
}

/** The C API of Lua, as compiled to wasm. */
interface LuaModule {
  readonly HEAPU8: Uint8Array
  _malloc(bytes: number): number
  _free(at: number): void
  _lua_checkstack(state: number, more: number): number
  _lua_gettop(state: number): number
  _lua_settop(state: number, top: number): void
  _lua_createtable(state: number, list: number, fields: number): void
  _lua_rawset(state: number, table: number): void
  _lua_rawseti(state: number, table: number, index: number): void
  _lua_rawgeti(state: number, table: number, index: number): void
  _lua_pushnil(state: number): void
  _lua_pushnumber(state: number, value: number): void
  _lua_pushboolean(state: number, value: number): void
  _lua_pushlightuserdata(state: number, at: number): void
  _lua_pushlstring(state: number, at: number, bytes: number): void
  _lua_pushcclosure(state: number, func: number, values: number): void
  _lua_pcall(state: number, args: number, results: number, handler: number): number
  _lua_error(state: number): void
  _lua_type(state: number, index: number): number
  _lua_toboolean(state: number, index: number): number
  _lua_tonumber(state: number, index: number): number
  _lua_tolstring(state: number, index: number, length: number): number
  addFunction(func: (state: number) => number, type: string): number
}

const LUA_REGISTRYINDEX = -10_000
const LUA_GLOBALSINDEX = -10_002
const LUA_TBOOLEAN = 1
const LUA_TNUMBER = 3
const LUA_TSTRING = 4
/** Longer texts get memory of their own. */
const SCRATCH = 65_536

/**
 * Starts a Lua 5.1. `functions` is its global table `js`; `source` runs once, and declares `vm`. Calls go through the C API: the package's
 * own wrappers make a thread for each call, and cost more than most of the functions.
 */
export async function startLua(functions: Functions, source: string): Promise<RunningLua> {
  const { Lua } = createRequire(import.meta.url)('wasmoon-lua5.1') as { Lua: { create(): Promise<Lua> } }
  const lua = await Lua.create()
  const { module } = lua.luaApi
  const main = lua.global.address
  const scratch = module._malloc(SCRATCH)
  let memory: Buffer = Buffer.alloc(0)
  // the memory moves when it grows
  const bytes = (): Buffer => {
    const { buffer } = module.HEAPU8
    if (memory.buffer !== buffer) memory = Buffer.from(buffer)
    return memory
  }
  const pushText = (state: number, text: string): void => {
    const length = Buffer.byteLength(text)
    const at = length > SCRATCH ? module._malloc(length) : scratch
    bytes().write(text, at)
    module._lua_pushlstring(state, at, length)
    if (at !== scratch) module._free(at)
  }
  const push = (state: number, value: LuaValue): void => {
    if (typeof value === 'string') pushText(state, value)
    else if (typeof value === 'number') module._lua_pushnumber(state, value)
    else if (typeof value === 'boolean') module._lua_pushboolean(state, value ? 1 : 0)
    else if (value === undefined) module._lua_pushnil(state)
    else if (value === null) module._lua_pushlightuserdata(state, 0)
    else {
      module._lua_checkstack(state, 3)
      if (Array.isArray(value)) {
        module._lua_createtable(state, value.length, 0)
        for (const [i, item] of value.entries()) {
          push(state, item)
          module._lua_rawseti(state, -2, i + 1)
        }
      } else {
        const fields = Object.entries(value)
        module._lua_createtable(state, 0, fields.length)
        for (const [name, field] of fields) {
          pushText(state, name)
          push(state, field)
          module._lua_rawset(state, -3)
        }
      }
    }
  }
  const textAt = (state: number, index: number): string => {
    const at = module._lua_tolstring(state, index, scratch)
    return bytes().toString('utf8', at, at + bytes().readUInt32LE(scratch))
  }
  const read = (state: number, index: number): string | number | boolean | undefined => {
    const type = module._lua_type(state, index)
    if (type === LUA_TSTRING) return textAt(state, index)
    if (type === LUA_TNUMBER) return module._lua_tonumber(state, index)
    return type === LUA_TBOOLEAN ? module._lua_toboolean(state, index) === 1 : undefined
  }
  const called = (func: Functions[string]) => (state: number) => {
    const args = Array.from({ length: module._lua_gettop(state) }, (_, i) => read(state, i + 1))
    let failed = false
    try {
      push(state, func(...(args as never[])))
    } catch (error) {
      failed = true
      push(state, String(error))
    }
    if (failed) module._lua_error(state)
    return 1
  }
  push(main, { null: null })
  for (const [name, func] of Object.entries(functions)) {
    pushText(main, name)
    module._lua_pushcclosure(main, module.addFunction(called(func), 'ii'), 0)
    module._lua_rawset(main, -3)
  }
  lua.luaApi.lua_setfield(main, LUA_GLOBALSINDEX, 'js')
  lua.doStringSync(source)
  lua.luaApi.lua_getfield(main, LUA_GLOBALSINDEX, 'vm')
  const reference = lua.luaApi.luaL_ref(main, LUA_REGISTRYINDEX)
  return {
    call: (...args) => {
      const top = module._lua_gettop(main)
      module._lua_checkstack(main, args.length + 1)
      module._lua_rawgeti(main, LUA_REGISTRYINDEX, reference)
      for (const arg of args) push(main, arg)
      const failed = module._lua_pcall(main, args.length, 1, 0)
      const result = read(main, -1)
      module._lua_settop(main, top)
      if (failed !== 0) throw new Error(`in the VM: ${String(result)}`)
      return typeof result === 'number' ? result : String(result ?? '')
    }
  }
}
