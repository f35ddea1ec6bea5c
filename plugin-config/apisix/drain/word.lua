--- This worker's word: a statement about every entry, true in the configuration that this worker
-- routes by now (docs/decisions/0029). A statement that is no longer true does not stay:
--
--   the configuration changed   the worker takes its word back in the step that changes it
--   the deny-list changed       each statement names the generation in which it was made, and is
--                               void if the entry is younger
--
-- The worker repeats only statements that may have changed: those about entries that came or went,
-- entries in a place that came, went or has other nodes, and entries that share a place with one
-- of these. Without entries a check is one read of the dictionary.
local places_mod   = require("apisix.drain.places")
local about_mod    = require("apisix.drain.about")
local words        = require("apisix.drain.words")
local setmetatable = setmetatable
local ipairs       = ipairs
local pairs        = pairs
local next         = next
local pcall        = pcall
local max          = math.max
local str_match    = string.match
local ngx          = ngx
local log          = ngx.log
local clock_now    = require("apisix.drain.clock").now
local ngx_sleep    = ngx.sleep

-- the most tries of one check: if the configuration keeps changing, the next check goes on
local TURNS = 3
-- nodes by name and by discovery: seconds between two lookups, and the largest share of a
-- worker's time that lookups may take
local MOVING, SHARE = 0.25, 0.05
-- seconds left to requests between two parts of long work. After a sleep of 0 the worker would
-- never wait for events, and on a busy machine the scheduler would let its requests wait
local PAUSE = 0.001
local NONE = {}

local _M = {}
local mt = { __index = _M }


local function void(self)
    self.mark = self.mark + 1
    if self.told then
        self.told = nil
        words.void(self.counts, self.number)
    end
end


local change_all


-- Marks an entry as changed, and the entries of its successors, since they are in its places.
local function change(self, entry, seen)
    if seen[entry.id] then
        return
    end
    seen[entry.id], self.dirty[entry.id] = true, true
    change_all(self, entry.successors, seen)
    change_all(self, self.followed[entry.id], seen)
end


function change_all(self, following, seen)
    for ip in pairs(following and following.ips or NONE) do
        for _, entry in ipairs(self.entries.set.ips[ip] or NONE) do
            change(self, entry, seen)
        end
    end
end


-- Marks all entries with one of these addresses as changed.
local function touch(self, nodes, seen)
    local ips = self.entries.set.ips
    for _, node in ipairs(nodes) do
        for _, entry in ipairs(ips[node.ip] or NONE) do
            change(self, entry, seen)
        end
    end
end


-- The addresses that can lead a request to this one: itself, and those that it takes over from.
local function ways_to(self, ip, ways)
    ways = ways or {}
    ways[ip] = true
    for _, entry in pairs(self.entries:naming(ip)) do
        if not ways[entry.ip] then
            ways_to(self, entry.ip, ways)
        end
    end
    return ways
end


--- @tparam table deps { core, entries, counts, number }
function _M.new(deps)
    local self = setmetatable({
        entries = deps.entries, counts = deps.counts, number = deps.number,
        mark = 0, due = 0, checked = 0, news = false, told = nil, idle = nil, busy = false,
        dirty = {},     -- { [entry id] = true }
        followed = {},  -- { [entry id] = the successors that its line names }
        lines = {},     -- { [part] = { [entry id] = line } }
        unwritten = {}, -- { [part] = true }
    }, mt)
    self.places = places_mod.new({
        core = deps.core,
        pause = function() ngx_sleep(PAUSE) end,
        changed = function() void(self) end,
        touched = function(nodes) touch(self, nodes, {}) end,
        news = function()
            self.news = true
            void(self)
            self:look()
        end,
    })
    return self
end


-- Takes in the changes of the deny-list. @treturn number its generation
local function follow(self)
    local gen, touched, seen = self.entries:current().gen, self.entries:touched(), {}
    for id in pairs(touched) do
        local entry = self.entries:held_as(id)
        self.dirty[id] = true
        if entry then
            change(self, entry, seen)
        else
            change_all(self, self.followed[id], seen)
        end
        for ip in pairs(ways_to(self, str_match(id, "|(.*)|"))) do
            for place in pairs(self.places:of(ip)) do
                touch(self, place.list, seen)
                self.places.rest()
            end
        end
    end
    return gen
end


local function say(self, id, gen)
    local entry, part = self.entries:held_as(id), words.part(id)
    self.lines[part] = self.lines[part] or {}
    local text
    if entry then
        local about = about_mod.new(entry, function() return self.entries.set end, self.places.rest)
        local seen = {}
        for ip in pairs(ways_to(self, entry.ip)) do
            for place in pairs(self.places:of(ip)) do
                if not seen[place] and self.places:uses(place) then
                    seen[place] = true
                    about:add(place.name, place.list)
                end
                self.places.rest()
            end
        end
        text = words.line(id, gen, about:text())
    end
    self.followed[id] = entry and entry.successors
    if self.lines[part][id] ~= text then
        self.lines[part][id], self.unwritten[part] = text, true
    end
end


-- @treturn boolean whether all of it is written
local function write(self)
    for part in pairs(self.unwritten) do
        if not words.write(self.counts, self.number, part, self.lines[part]) then
            return false
        end
        self.unwritten[part] = nil
        self.places.rest()
    end
    return true
end


local function look_up(self)
    if clock_now() < self.due and not self.places.unseen and not self.news then
        return
    end
    self.news = false
    local began = clock_now()
    local any = self.places:look_up()
    local now = clock_now()
    self.due = any and now + max(MOVING, (now - began) / SHARE) or 0
end


local function speak(self)
    local places = self.places
    for _ = 1, TURNS do
        if not places:refresh() then
            void(self)
            return
        end
        local mark = self.mark
        look_up(self)
        if places:waits() then
            void(self)
            return
        end
        local gen = follow(self)
        for id in pairs(self.dirty) do
            self.dirty[id] = nil
            say(self, id, gen)
        end
        -- no pause from the end of `write` to `tell`
        if not write(self) then
            void(self)
            return
        end
        if not places:holds() then
            void(self)
        elseif self.mark == mark then
            local told = words.tell(self.counts, self.number, gen, places:hidden(), mark)
            self.told = told and gen or nil
            if self.entries:current().gen == gen then
                return
            end
        end
    end
end


-- Without entries the worker publishes no statement and keeps none.
local function say_nothing(self, gen)
    self.idle = gen
    void(self)
    self.entries:touched()
    self.places:forget_names()
    if next(self.lines) then
        words.forget(self.counts, self.number)
    end
    self.dirty, self.lines, self.unwritten, self.followed = {}, {}, {}, {}
end


--- See places.records.
function _M:records(name)
    return self.places:records(name)
end


--- Takes the word back if discovery has changed the nodes of a place with this address.
function _M:check(ip)
    for way in pairs(self.told and ways_to(self, ip) or NONE) do
        if self.places:moved(way) then
            self.news = true
            void(self)
            return
        end
    end
end


-- At every check: reads all entries that may still be sealed, within SHARE of the worker's time.
local function check_all(self)
    local began = clock_now()
    if not self.told or began < self.checked or not self.places:has_moving() then
        return
    end
    for _, entry in ipairs(self.entries:all()) do
        if not entry.sealed then
            self:check(entry.ip)
        end
        self.places.rest()
    end
    local now = clock_now()
    self.checked = now + (now - began) / SHARE
end


local function look(self)
    local set = self.entries:current()
    if set.n == 0 then
        say_nothing(self, set.gen)
        return
    end
    if self.told and not self.places:holds() then
        void(self)
    end
    check_all(self)
    local is_due = self.due > 0 and clock_now() >= self.due
    if self.told ~= set.gen or is_due or self.news or self.entries:is_touched() then
        speak(self)
    end
end


--- Brings the word up to date. It may pause, so only timers and requests of the Barrier API may
-- call it. Never raises.
function _M:look()
    if self.idle == self.entries.dict:get("gen") then
        return
    end
    if self.busy then
        -- the running check sees every change, except one that makes a published word untrue
        if self.told and not self.places:holds() then
            void(self)
        end
        return
    end
    self.busy, self.idle = true, nil
    self.places:begin()
    local ok, err = pcall(look, self)
    self.busy = false
    if not ok then
        void(self)
        if err ~= self.err then
            self.err = err
            log(ngx.ERR, "apisix-drain: this worker says nothing about places: ", err)
        end
    end
end


return _M
