--- The stream subsystem (L4) has a Lua VM of its own in each worker process. It takes part like one
-- more worker, with a slot, a word and counts of its own (docs/decisions/0067). A gateway covers L4
-- if the stream subsystem of every worker process does.
local next   = next
local type   = type

local _M = {}


local function is_filled(list)
    return type(list) == "table" and next(list) ~= nil
end


--- The part of this gateway's L4 that the barrier cannot cover.
-- @tparam table core apisix.core
-- @treturn string|nil nil if there is none
function _M.gap(core)
    local conf = core.config.local_conf()
    local apisix = type(conf.apisix) == "table" and conf.apisix or {}
    local proxy = type(apisix.stream_proxy) == "table" and apisix.stream_proxy or {}
    if is_filled(proxy.udp) then
        return "apisix.stream_proxy.udp: a UDP session outlives its pod, and no client notices"
    end
    if is_filled(conf.xrpc) and is_filled(conf.xrpc.protocols) then
        return "xrpc.protocols: APISIX connects by itself for these, without its balancer"
    end
    return nil
end


--- Does every worker process cover L4? A process that exits after a reload counts too: its sessions
-- live on.
-- @tparam table living from workers.list
-- @treturn boolean
function _M.covered(living)
    local halves, any = {}, false
    for _, worker in ipairs(living) do
        if worker.stream and worker.fit then
            halves[worker.pid] = worker
        end
    end
    for _, worker in ipairs(living) do
        local half = halves[worker.pid]
        if not worker.stream and not (half and half.shared == worker.shared) then
            return false
        end
        any = true
    end
    return any
end


--- The workers without the unfit stream subsystems: a seal needs no word of those.
-- @tparam table living from workers.list
-- @treturn table
function _M.speakers(living)
    local list = {}
    for _, worker in ipairs(living) do
        if worker.fit or not worker.stream then
            list[#list + 1] = worker
        end
    end
    return list
end


return _M
