--- What tests and the demo see and change in a gateway: the functions of `barrier.ts`.
local address   = require("apisix.drain.address")
local cells     = require("apisix.drain.cells")
local entries_mod = require("apisix.drain.entries")
local json      = require("apisix.drain.json")
local request   = require("apisix.drain.request")
local successors = require("apisix.drain.successors")
local totals    = require("apisix.drain.totals")
local workers   = require("apisix.drain.workers")

local _M = {}


-- What a worker's runtime.lua keeps for itself.
local function here_of(worker)
    local view = worker.env.require("apisix.drain.runtime").view
    for i = 1, 20 do
        local name, value = debug.getupvalue(view, i)
        if name == "here" then
            return value
        end
    end
end


--- @tparam table gateway of vm.lua
-- @treturn table functions
function _M.of(gateway)
    local dict, counts = gateway.shared["apisix-drain"], gateway.shared["apisix-drain-counts"]
    local entries = entries_mod.new(dict)
    local held = {}     -- requests that `enter` has counted, by kind and address
    local see, open = {}, {}

    local function numbers()
        return workers.numbers((workers.list(counts)))
    end

    local function inflight(ip, port)
        local list = numbers()
        return totals.read(counts, list, totals.unplaced(counts, list), ip, port)
    end

    local function first()
        local found
        for _, worker in pairs(gateway.workers) do
            if not worker.exiting and (not found or worker.id < found.id) then
                found = worker
            end
        end
        return found
    end

    function see.look(ip, port)
        return entries_mod.level(entries:current(), address.of(ip, port)) or "free"
    end

    function see.all()
        local list = json.list()
        for i, entry in ipairs(entries:all()) do
            local bypasses, late = require("apisix.drain.entry").passes(entries.dict, entry.id)
            list[i] = {
                uid = entry.uid, ip = entry.ip, port = entry.port,
                state = entry.sealed and "sealed" or "draining", ttl = entries:left(entry),
                expires = dict:get("e|" .. entry.id) or 0, bypasses = bypasses, late = late,
                successors = entry.successors and successors.names(entry.successors),
            }
        end
        return list
    end

    function see.size() return entries:current().n end

    function see.put(body)
        local list, err = request.entries(body)
        for _, entry in ipairs(assert(list, err)) do
            assert(entries:put(entry))
        end
    end

    function see.remove(body)
        local input = assert(request.removal(body))
        return entries:remove(input.uids, input.as_of, input.stops or {})
    end

    -- Are puts as of this revision refused?
    function see.outdated(uid, as_of) return as_of < (dict:get("r|" .. uid) or 0) end

    function see.inflight(ip, port)
        local sum = inflight(ip, port)
        return { requests = sum.requests, long = sum.long }
    end

    -- All that the living workers count.
    function see.total()
        local living, sum = {}, 0
        for _, number in ipairs(numbers()) do
            living[number] = true
        end
        for _, key in ipairs(counts:get_keys(0)) do
            local worker = key:match("^p|(%d+)|.+|%d+$")
            local listed = living[tonumber(worker)] and counts:get(key) or 0
            if listed ~= 0 then
                local requests, long = cells.read(math.floor(listed / totals.PORTS))
                sum = sum + requests + long
            end
        end
        return sum
    end

    -- Counts a request in the first worker, as if it had one.
    function see.enter(ip, port, kind)
        local id, holder = kind .. ip .. port, {}
        local worker = first()
        local here = here_of(worker)
        local addr = worker.env.require("apisix.drain.address").of(ip, port)
        here.inflight:enter(addr, holder)
        if kind == "long" then
            here.inflight:lengthen(holder, "upgraded")
        end
        held[id] = held[id] or {}
        table.insert(held[id], { here = here, holder = holder })
    end

    function see.leave(ip, port, kind)
        local one = table.remove(held[kind .. ip .. port])
        one.here.inflight:leave(one.holder, true)
    end

    function see.count(name) return counts:get(name) or 0 end

    function see.set_count(name, value) counts:set(name, value) end

    function see.unfit(pid, why)
        for _, worker in ipairs((workers.list(counts))) do
            if worker.pid == pid and why ~= "" then
                counts:set("u|" .. worker.number, why)
            elseif worker.pid == pid then
                counts:delete("u|" .. worker.number)
            end
        end
    end

    function see.second(is) gateway.second = is end

    function see.ahead(seconds) gateway.ahead = seconds end

    function see.instance() return cells.instance(dict) end

    -- Runs Lua in each worker.
    function see.run(text)
        for _, worker in pairs(gateway.workers) do
            setfenv(assert(loadstring(text)), worker.env)()
        end
    end

    -- The requests in flight to each pod whose entries are all sealed. A pod is told until that is
    -- 0, and again once an entry of it changes.
    function see.sealed()
        entries:current()
        for id in pairs(entries:touched()) do
            open[id:match("^[^|]+")] = true
        end
        local pods = {}
        for uid in pairs(open) do
            local sum, found = 0, entries:of_uids({ uid })
            for _, entry in ipairs(found) do
                sum = sum and entry.sealed and sum + inflight(entry.ip, entry.port).requests
            end
            pods[uid] = found[1] and sum or nil
            open[uid] = pods[uid] and sum > 0 or nil
        end
        return pods
    end

    return see
end


return _M
