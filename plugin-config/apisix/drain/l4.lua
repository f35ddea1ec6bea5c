--- The stream subsystem (L4) has a Lua VM of its own in each worker process. It takes part like one
-- more worker, with a slot, a word and counts of its own (docs/decisions/0067). A gateway covers L4
-- if the stream subsystem of every worker process does, or if its nginx has none.

local _M = {}


local function is_filled(list)
    return type(list) == "table" and next(list) ~= nil
end


--- Does this nginx have a stream subsystem? An APISIX before proxy_mode has one with stream_proxy.
-- @treturn boolean
-- @treturn string|nil the part of its L4 that the barrier cannot cover
function _M.of(core)
    local conf, gap = core.config.local_conf(), nil
    local apisix = type(conf.apisix) == "table" and conf.apisix or {}
    local proxy, mode = apisix.stream_proxy, apisix.proxy_mode
    if is_filled(proxy) and is_filled(proxy.udp) then
        gap = "apisix.stream_proxy.udp: a UDP session outlives its pod, and no client notices"
    elseif is_filled(conf.xrpc) and is_filled(conf.xrpc.protocols) then
        gap = "xrpc.protocols: APISIX connects by itself for these, without its balancer"
    end
    return mode ~= "http" and (mode ~= nil or is_filled(proxy)), gap
end


--- Is no L4 uncovered? A process that exits after a reload counts too: its sessions live on.
-- @tparam table living from workers.list
function _M.covered(living)
    local halves = {}
    for _, worker in ipairs(living) do
        halves[worker.pid] = worker.stream and worker or halves[worker.pid]
    end
    for _, worker in ipairs(living) do
        local half = halves[worker.pid] or { shared = not worker.l4 and worker.shared, fit = true }
        if not worker.stream and not (half.fit and half.shared == worker.shared) then
            return false
        end
    end
    return true
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
