--- Requests in flight, counted per worker and address in the memory that all workers share
-- (cells.lua). The dictionary of counts has the lists of ports (totals.lua) and:
--
--   o|worker           requests that could not be counted on their own counter (no room)
--
-- `worker` is a number that no two processes ever share. Readers add up the numbers of living
-- processes, so the counts of a dead one are left out. Every address includes the `o` counts: a
-- request that is not counted on its own address must keep all addresses from looking idle.
--
-- totals.lua reads the counters of all workers.
local cells_mod    = require("apisix.drain.cells")
local totals       = require("apisix.drain.totals")
local pcall        = pcall
local pairs        = pairs
local ipairs       = ipairs

local _M = { KINDS = { "upgraded", "sse", "stream" } }
local mt = { __index = _M }


--- @tparam table dict an ngx.shared dictionary that only counts use
-- @tparam number worker the number of this process
-- @tparam number slot the slot of this process
-- @tparam table|nil entries store when an ordinary request ended (entries.finished)
-- @treturn table|nil counter
-- @treturn string|nil error
function _M.new(dict, worker, slot, entries)
    local overflow = "o|" .. worker
    local ok, err = dict:safe_set(overflow, 0)
    if not ok then
        return nil, "failed to reserve a counter: " .. err
    end

    local cells
    cells, err = cells_mod.slice(slot)
    if not cells then
        return nil, err
    end
    return setmetatable({
        dict     = dict,
        entries  = entries,
        overflow = overflow,
        store    = cells,
        ports    = totals.ports(dict, worker),
        -- a tally is { addr, counter, hot }: `tallies` has it by the id of its address, and
        -- `opened` by its counter
        tallies  = {},
        opened   = {},
        -- the counter that each living request holds, by its api_ctx. APISIX reuses an api_ctx
        -- after its log phase, and the plugin's `log` runs before that. There is no log phase if
        -- nginx drops ngx.ctx on an internal redirect (error_page into another location). Then
        -- the api_ctx becomes garbage, and its item here goes with it
        held     = setmetatable({}, { __mode = "k" }),
        -- the kind of each long-lived request, by its api_ctx (kinds.lua)
        kinds    = setmetatable({}, { __mode = "k" }),
    }, mt)
end


-- Makes the counter of an address, and writes its index (totals.lua) before the first count. If a
-- reader misses the index, it wrote its entry before that, so this request will see the entry.
local function make(self, addr)
    local counter = self.store:make(addr)
    if not counter then
        return nil
    end
    if not self.ports:list(addr, counter) then
        self.store:give_back(counter)
        return nil
    end
    return counter
end


-- Returns the tally of an address, or nil without room. Several tables can stand for one address
-- (another spelling, or address.lua has forgotten the first). They share one tally, because the
-- index can name only one counter.
local function open(self, addr)
    local tally = self.tallies[addr.id]
    if not tally then
        local counter = make(self, addr)
        if not counter then
            return nil
        end
        tally = { addr = addr, counter = counter }
        self.tallies[addr.id], self.opened[counter] = tally, tally
    end
    addr.tally = tally
    return tally
end


local function add(self, counter, n)
    if counter == self.overflow then
        self.dict:incr(counter, n)
    else
        self.store:add(counter, n)
    end
end


--- Counts a request up on an address.
-- @tparam table addr from address.of
-- @tparam table holder the request's api_ctx
function _M:enter(addr, holder)
    local tally = addr.tally
    if not tally or not tally.counter then
        tally = open(self, addr)
    end
    if tally then
        tally.hot = true
    end
    local counter = tally and tally.counter or self.overflow
    add(self, counter, 1)
    self.held[holder] = counter
end


-- Stores when a request ended. If that fails, the time is unknown, and the request must still be
-- counted down: hence the pcall.
local function finish(self, tally)
    local entries = self.entries
    return entries and pcall(entries.finished, entries, tally.addr)
end


--- Counts a request down. Safe to call at any time, any number of times.
-- @tparam boolean|nil was_sent the request was sent to the node: only then its end is stored
-- @treturn table|nil the address that the request was counted on, if known
function _M:leave(holder, was_sent)
    local counter = self.held[holder]
    if not counter then
        return nil
    end
    local kind = self.kinds[holder]
    local tally = self.opened[counter]
    if was_sent and tally and not kind then
        finish(self, tally)
    end
    self.held[holder] = nil
    if kind then
        self.kinds[holder] = nil
        self.store:add_long(counter, kind, -1)
    else
        add(self, counter, -1)
    end
    return tally and tally.addr
end


--- Counts an ordinary request as a long-lived one from now on.
-- @tparam string kind one of _M.KINDS
function _M:lengthen(holder, kind)
    local counter = self.held[holder]
    local tally = self.opened[counter]
    if not tally or self.kinds[holder] then
        return
    end
    finish(self, tally)
    self.store:lengthen(counter, kind)
    self.kinds[holder] = kind
end


--- Counts down the requests that ended without a log phase. A count never goes below the number of
-- living requests: no request runs during this function, because it does not yield.
-- @treturn number how many requests were counted down
function _M:reconcile()
    local living, lost = { ordinary = {} }, 0
    for _, kind in ipairs(_M.KINDS) do
        living[kind] = {}
    end
    for holder, counter in pairs(self.held) do
        local of = living[self.kinds[holder] or "ordinary"]
        of[counter] = (of[counter] or 0) + 1
    end

    local store = self.store
    local function settle(kind, counter, now, subtract)
        local extra = now - (living[kind][counter] or 0)
        if extra > 0 then
            subtract(extra)
            lost = lost + extra
        end
    end

    local function settle_ordinary(counter, now)
        settle("ordinary", counter, now, function(n) add(self, counter, -n) end)
    end

    settle_ordinary(self.overflow, self.dict:get(self.overflow) or 0)
    for counter in pairs(self.opened) do
        settle_ordinary(counter, store:get(counter))
        for _, kind in ipairs(_M.KINDS) do
            settle(kind, counter, store:of_kind(counter, kind), function(n)
                store:add_long(counter, kind, -n)
            end)
        end
    end
    return lost
end


local function has_none_long(store, counter)
    for _, kind in ipairs(_M.KINDS) do
        if store:of_kind(counter, kind) ~= 0 then
            return false
        end
    end
    return true
end


--- Removes this worker's counters that are zero and were not used since the last call, to bound the
-- memory. Returns how many.
function _M:sweep()
    local store, stale = self.store, {}
    for counter, tally in pairs(self.opened) do
        if tally.hot then
            tally.hot = false
        elseif store:get(counter) == 0 and has_none_long(store, counter) then
            stale[#stale + 1] = counter
        end
    end

    for _, counter in ipairs(stale) do
        local tally = self.opened[counter]
        local addr = tally.addr
        self.opened[counter], self.tallies[addr.id] = nil, nil
        -- all tables that stand for this address share the tally: each must make a new counter
        tally.counter = nil
        -- a reader that still has the index may once count the requests of another address too:
        -- its sum is then too large, never too small
        self.ports:free(addr)
        store:give_back(counter)
    end
    self.ports:sweep()
    return #stale
end


return _M
