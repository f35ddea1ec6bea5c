--- Finds the functions of APISIX that a request passes through, and replaces them, once
-- in the life of a worker. A missing function makes the worker unfit, and raises no error.
--
--   apisix.balancer pick_server   called through the module when a request is first routed
--   apisix.balancer run           called through the module when nginx connects. For a retry, run
--                                 calls pick_server by its upvalue, which is replaced by `retry`
--   apisix http_log_phase         called through the module at the end of every request
--   apisix http_header_filter_phase   called through the module when a response begins
--   apisix stream_log_phase       in the stream subsystem, at the end of every session
--
-- The replacements stay for ever: a worker may have compiled code that contains them, and requests
-- that they counted are still in flight. After an unload, the replacements only call the originals.
local ngx    = ngx
local debug  = debug
local ipairs = ipairs
local type   = type
local concat = table.concat

local IS_HTTP = ngx.config.subsystem == "http"
local LOG     = IS_HTTP and "http_log_phase" or "stream_log_phase"
local HEADER  = "http_header_filter_phase"
local UPVALUE = "pick_server"
local MARK    = "_apisix_drain_own"

local _M = {}


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
local function find(balancer, apisix)
    local missing = {}
    local function need(module, name, what)
        if type(module) ~= "table" or type(module[name]) ~= "function" then
            missing[#missing + 1] = what .. " is not a function"
            return nil
        end
        return module[name]
    end

    local own = {
        pick   = need(balancer, "pick_server", "apisix.balancer pick_server"),
        run    = need(balancer, "run", "apisix.balancer run"),
        log    = need(apisix, LOG, "apisix " .. LOG),
        header = IS_HTTP and need(apisix, HEADER, "apisix " .. HEADER) or nil,
    }

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


--- Puts the plugin's functions in place. After a success, a further call does nothing.
-- @tparam table balancer the module apisix.balancer
-- @tparam table apisix the module apisix
-- @tparam function make called with APISIX's own functions, returns ours { pick, retry, run, log,
-- header }
-- @treturn string|nil why nothing was replaced; nil after a success
function _M.install(balancer, apisix, make)
    if type(balancer) == "table" and balancer[MARK] then
        return nil
    end

    local own, missing = find(balancer, apisix)
    if #missing > 0 then
        return concat(missing, "; ")
    end

    local ours = make(own)
    debug.setupvalue(own.run, own.upvalue, ours.retry)
    balancer.pick_server = ours.pick
    balancer.run = ours.run
    apisix[LOG] = ours.log
    if IS_HTTP then
        apisix[HEADER] = ours.header
    end
    balancer[MARK] = { own = own, ours = ours }
    return nil
end


--- Are the plugin's functions still in place? Another plugin may have been loaded later.
-- @treturn string|nil a text that names the functions that are not; nil if all are in place
function _M.verify(balancer, apisix)
    local mark = balancer[MARK]
    if not mark then
        return "not installed"
    end

    local own, ours = mark.own, mark.ours
    local _, held = debug.getupvalue(own.run, own.upvalue)
    local lost = {}
    for _, check in ipairs({
        { held == ours.retry, "the upvalue " .. UPVALUE .. " of apisix.balancer run" },
        { balancer.pick_server == ours.pick, "apisix.balancer pick_server" },
        { balancer.run == ours.run, "apisix.balancer run" },
        { apisix[LOG] == ours.log, "apisix " .. LOG },
        { not IS_HTTP or apisix[HEADER] == ours.header, "apisix " .. HEADER },
    }) do
        if not check[1] then
            lost[#lost + 1] = check[2]
        end
    end
    if #lost > 0 then
        return concat(lost, ", ") .. " was replaced by something else after us"
    end
    return nil
end


return _M
