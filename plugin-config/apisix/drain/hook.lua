--- For `apisix.lua_module_hook`: loads the barrier without an entry in the plugin list. The module
-- hook runs before APISIX itself is loaded. So the barrier starts with init_worker of
-- apisix.balancer, which APISIX calls in every worker.
local package  = package
local loadfile = loadfile
local error    = error
local pcall    = pcall
local ngx      = ngx
local require  = require

local NAME = "apisix.balancer"
local _M = {}


local function hang_on(balancer)
    local own = balancer.init_worker
    balancer.init_worker = function(...)
        if own then
            own(...)
        end
        require("apisix.drain.runtime").start()
    end
    return balancer
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


-- the stream subsystem runs the module hook too, in a Lua VM without the plugin's dictionaries
if ngx.config.subsystem == "http" then
    -- this is the master: every worker will inherit the memory that is mapped now
    pcall(function()
        require("apisix.drain.cells").prepare(ngx.shared["apisix-drain-counts"])
        require("apisix.drain.wake").prepare(ngx.shared["apisix-drain-counts"])
    end)
    if package.loaded[NAME] then
        hang_on(package.loaded[NAME])
    else
        package.preload[NAME] = load
    end
end


return _M
