--- For `apisix.lua_module_hook`: loads the barrier. APISIX runs it in the master, before APISIX is
-- loaded. So the barrier starts with a function that APISIX calls in every worker: init_worker of
-- apisix.balancer, or stream_init_worker in the stream subsystem. The stream subsystem has a Lua VM
-- of its own in the same process.
local ngx      = ngx

local STARTS = {
    http = { module = "apisix.balancer", func = "init_worker" },
    stream = { module = "apisix", func = "stream_init_worker" },
}
local START = STARTS[ngx.config.subsystem]
-- plugins of APISIX that send a request to the picked node by themselves (docs/ways.md)
local SENDERS = { "http-dubbo", "ext-plugin-post-resp" }
local _M = {}


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
    return chunk(name)
end


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


-- A preloader stays when APISIX reloads its plugins.
for _, name in ipairs(SENDERS) do
    local own = package.preload["apisix.plugins." .. name] or load
    package.preload["apisix.plugins." .. name] = function(module)
        local plugin = own(module)
        local send = plugin.before_proxy
        plugin.before_proxy = function(conf, ctx)
            return require("apisix.drain.runtime").around(send, conf, ctx)
        end
        return plugin
    end
end


-- Every worker inherits the memory that the master maps now. The first subsystem maps it, and the
-- other subsystem finds its address in the dictionary.
pcall(function()
    require("apisix.drain.cells").prepare(ngx.shared["apisix-drain-counts"])
    require("apisix.drain.wake").prepare(ngx.shared["apisix-drain-counts"])
end)
if package.loaded[START.module] then
    hang_on(package.loaded[START.module])
else
    -- the other hook may have put its own loader there
    local loader = package.preload[START.module] or load
    package.preload[START.module] = function(name)
        return hang_on(loader(name))
    end
end


return _M
