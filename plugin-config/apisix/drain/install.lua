--- Finds the functions of APISIX that a request passes through, and replaces them, once
-- in the life of a worker. A missing function makes the worker unfit, and raises no error.
--
--   apisix.balancer pick_server   called through the module when a request is first routed
--   apisix.balancer run           called through the module when nginx connects. For a retry, run
--                                 calls pick_server by its upvalue, which is replaced by `retry`
--   apisix http_balancer_phase    calls run. It is not replaced, and must stay
--   apisix http_log_phase         called through the module at the end of every request
--   apisix http_header_filter_phase   called through the module when a response begins
--   apisix stream_log_phase       in the stream subsystem, at the end of every session
--   ngx.balancer set_current_peer called through the module by all Lua that connects a request
--   apisix.core.event push        called through the module after each change of the routes:
--                                 APISIX's plugin `ai` then replaces functions of APISIX
--
-- The replacements stay for ever.
local ngx    = ngx
local concat = table.concat

local NAMES   = { balancer = "apisix.balancer", apisix = "apisix", peers = "ngx.balancer",
                  event = "apisix.core.event" }
-- module, function, and its name among APISIX's own functions and among ours
local PLACES  = {
    { "balancer", "pick_server", "pick" },
    { "balancer", "run", "run" },
}
for _, place in ipairs(ngx.config.subsystem == "stream" and {
    { "apisix", "stream_log_phase", "log" },
} or {
    { "apisix", "http_balancer_phase", "connect" },
    { "apisix", "http_log_phase", "log" },
    { "apisix", "http_header_filter_phase", "header" },
    { "peers", "set_current_peer", "peer" },
    { "event", "push", "push" },
}) do
    PLACES[#PLACES + 1] = place
end
local UPVALUE = "pick_server"

local _M = {}
-- { modules, own, ours } once the functions are in place
local installed


local function upvalue_index(func, name)
    for i = 1, 255 do
        local found = debug.getupvalue(func, i)
        if not found then
            return nil
        end
        if found == name then
            return i
        end
    end
    return nil
end


-- Returns the functions that exist, and a list of texts about the missing ones.
local function find(modules)
    local own, missing = {}, {}
    for _, place in ipairs(PLACES) do
        local module, name, key = modules[place[1]], place[2], place[3]
        own[key] = type(module) == "table" and module[name]
        -- APISIX 2 has no events, and no plugin `ai`
        if type(own[key]) ~= "function" and (module or place[1] ~= "event") then
            missing[#missing + 1] = NAMES[place[1]] .. " " .. name .. " is not a function"
        end
    end

    if own.run then
        own.upvalue = upvalue_index(own.run, UPVALUE)
        local _, held
        if own.upvalue then
            _, held = debug.getupvalue(own.run, own.upvalue)
        end
        if type(held) ~= "function" then
            missing[#missing + 1] = "apisix.balancer run has no upvalue " .. UPVALUE
                                    .. ": retries would not see the barrier"
        elseif held ~= own.pick then
            missing[#missing + 1] = "apisix.balancer run retries with another function than "
                                    .. "pick_server: something else has replaced one of them"
        end
    end
    return own, missing
end


--- Puts the plugin's functions in place. Call it once.
-- @tparam table modules { balancer, apisix, peers, event }; no event in APISIX 2
-- @tparam function make called with APISIX's own functions, returns ours (wrappers.lua)
-- @treturn string|nil why nothing was replaced; nil after a success
function _M.install(modules, make)
    local own, missing = find(modules)
    if #missing > 0 then
        return concat(missing, "; ")
    end

    local ours = make(own)
    debug.setupvalue(own.run, own.upvalue, ours.retry)
    for _, place in ipairs(PLACES) do
        local func = own[place[3]] and ours[place[3]]
        if func then
            modules[place[1]][place[2]] = func
        end
    end
    installed = { modules = modules, own = own, ours = ours }
    return nil
end


local function source_of(func)
    return type(func) == "function" and debug.getinfo(func, "S").short_src or type(func)
end


--- Are the plugin's functions still in place? Another plugin may have been loaded later.
-- @treturn string|nil a text that names the functions that are not; nil if all are in place
function _M.verify()
    if not installed then
        return "not installed"
    end

    local own, ours, lost = installed.own, installed.ours, {}
    for _, place in ipairs(PLACES) do
        local module, name, key = place[1], place[2], place[3]
        local now = own[key] and installed.modules[module][name]
        if now ~= (own[key] and (ours[key] or own[key])) then
            lost[#lost + 1] = NAMES[module] .. " " .. name .. " (by " .. source_of(now) .. ")"
        end
    end
    local _, held = debug.getupvalue(own.run, own.upvalue)
    if held ~= ours.retry then
        lost[#lost + 1] = "the upvalue " .. UPVALUE .. " of apisix.balancer run"
    end
    if #lost > 0 then
        return concat(lost, ", ") .. " was replaced by something else after us: load that before us"
               .. ", or take it out"
    end
    return nil
end


return _M
