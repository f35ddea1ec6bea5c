/* oxlint-disable no-underscore-dangle -- the names of the C API in wasm */
import { createRequire } from 'node:module'

export type LuaValue = string | number | boolean | undefined

export interface RunningLua {
  /** Calls the global function `vm`. */
  call(...args: readonly LuaValue[]): string | number
}

/** The part of the package `wasmoon-lua5.1` that is used. `state` and every place in memory is a number. */
interface Lua {
  readonly ctx: Record<string, unknown>
  readonly global: { readonly address: number }
  readonly luaApi: {
    readonly module: LuaModule
    lua_getfield(state: number, table: number, name: string): void
    luaL_ref(state: number, table: number): number
  }
  doStringSync(source: string): unknown
}

/** The C API of Lua, as compiled to wasm. */
interface LuaModule {
  _malloc(bytes: number): number
  _free(at: number): void
  _lua_gettop(state: number): number
  _lua_settop(state: number, top: number): void
  _lua_rawgeti(state: number, table: number, index: number): void
  _lua_pushnil(state: number): void
  _lua_pushnumber(state: number, value: number): void
  _lua_pushboolean(state: number, value: number): void
  _lua_pushlstring(state: number, at: number, bytes: number): void
  _lua_pcall(state: number, args: number, results: number, handler: number): number
  _lua_type(state: number, index: number): number
  _lua_tonumber(state: number, index: number): number
  _lua_tolstring(state: number, index: number, length: number): number
  lengthBytesUTF8(text: string): number
  stringToUTF8(text: string, at: number, bytes: number): void
  UTF8ToString(at: number): string
}

const LUA_REGISTRYINDEX = -10_000
const LUA_GLOBALSINDEX = -10_002
const LUA_TNUMBER = 3

/**
 * Starts a Lua 5.1. `functions` is its global table `js`; `source` runs once, and declares `vm`. Calls go through the C API:
 * the package's own wrapper of a function makes a thread for each call.
 */
export async function startLua(
  functions: Readonly<Record<string, unknown>>,
  source: string
): Promise<RunningLua> {
  const { Lua } = createRequire(import.meta.url)('wasmoon-lua5.1') as { Lua: { create(): Promise<Lua> } }
  const lua = await Lua.create()
  const { module } = lua.luaApi
  const state = lua.global.address
  const push = (value: LuaValue): void => {
    if (typeof value === 'number') module._lua_pushnumber(state, value)
    else if (typeof value === 'boolean') module._lua_pushboolean(state, value ? 1 : 0)
    else if (value === undefined) module._lua_pushnil(state)
    else {
      const bytes = module.lengthBytesUTF8(value)
      const at = module._malloc(bytes + 1)
      module.stringToUTF8(value, at, bytes + 1)
      module._lua_pushlstring(state, at, bytes)
      module._free(at)
    }
  }
  lua.ctx['js'] = functions
  lua.doStringSync(source)
  lua.luaApi.lua_getfield(state, LUA_GLOBALSINDEX, 'vm')
  const reference = lua.luaApi.luaL_ref(state, LUA_REGISTRYINDEX)
  return {
    call: (...args) => {
      const top = module._lua_gettop(state)
      module._lua_rawgeti(state, LUA_REGISTRYINDEX, reference)
      for (const arg of args) push(arg)
      const failed = module._lua_pcall(state, args.length, 1, 0)
      const isNumber = module._lua_type(state, -1) === LUA_TNUMBER
      const result = isNumber
        ? module._lua_tonumber(state, -1)
        : module.UTF8ToString(module._lua_tolstring(state, -1, 0))
      module._lua_settop(state, top)
      if (failed !== 0) throw new Error(`in the VM: ${result}`)
      return result
    }
  }
}
