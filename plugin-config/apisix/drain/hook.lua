--- For `apisix.lua_module_hook`: loads the barrier without an entry in the plugin list. The module
-- hook runs before APISIX itself is loaded. So the barrier starts with a function that APISIX calls
-- in every worker: init_worker of apisix.balancer, or stream_init_worker in the stream subsystem.
-- The stream subsystem has a Lua VM of its own in the same process.
local package  = package
local loadfile = loadfile
local error    = error
local pcall    = pcall
local ngx      = ngx
local require  = require

local STARTS = {
    http = { module = "apisix.balancer", func = "init_worker" },
    stream = { module = "apisix", func = "stream_init_worker" },
}
local START = STARTS[ngx.config.subsystem]
local _M = {}


local function hang_on(module)
    local own = module[START.func]
    module[START.func] = function(...)
        if own then
            own(...)
        end
        require("apisix.drain.runtime").start()
    end
    return module
end


local function load(name)
    local path, err = package.searchpath(name, package.path)
    if not path then
        error("failed to find " .. name .. ": " .. err)
    end

    local chunk
    chunk, err = loadfile(path)
    if not chunk then
        error("failed to load " .. name .. ": " .. err)
    end
    return hang_on(chunk(name))
end


-- This runs in the master: every worker inherits the memory that is mapped now. The first subsystem
-- maps the memory, and the other subsystem finds its address in the dictionary.
pcall(function()
    require("apisix.drain.cells").prepare(ngx.shared["apisix-drain-counts"])
    require("apisix.drain.wake").prepare(ngx.shared["apisix-drain-counts"])
end)
if package.loaded[START.module] then
    hang_on(package.loaded[START.module])
else
    package.preload[START.module] = load
end


return _M
