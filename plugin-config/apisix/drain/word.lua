--- This worker's word: a statement about every entry, true in the configuration that this worker
-- routes by now (docs/decisions/0037). A statement that is no longer true does not count:
--
--   the configuration changed   the worker takes its word back in the step that changes it
--   the deny-list changed       each statement names the generation in which it was made, and is
--                               void if the entry is younger
--
-- The worker makes only those statements again that may have changed (affected.lua). Without
-- entries, a check is one read of the dictionary.
local places_mod   = require("apisix.drain.places")
local about_mod    = require("apisix.drain.word_text")
local affected_mod = require("apisix.drain.affected")
local words        = require("apisix.drain.word_store")
local max          = math.max
local ngx          = ngx
local log          = ngx.log
local clock_now    = require("apisix.drain.host").now
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


--- @tparam table deps { core, entries, counts, number }
function _M.new(deps)
    local self = setmetatable({
        entries = deps.entries, counts = deps.counts, number = deps.number,
        mark = 0, due = 0, checked = 0, news = false, told = nil, idle = nil, busy = false,
        affected = affected_mod.new(deps.entries),
        lines = {},     -- { [part] = { [entry id] = line } }
        unwritten = {}, -- { [part] = true }
    }, mt)
    self.places = places_mod.new({
        core = deps.core,
        pause = function() ngx_sleep(PAUSE) end,
        changed = function() void(self) end,
        touched = function(nodes) self.affected:moved(nodes) end,
        news = function()
            self.news = true
            void(self)
            self:look()
        end,
    })
    return self
end


local function say(self, id, gen)
    local entry, part = self.entries:held_as(id), words.part(id)
    self.lines[part] = self.lines[part] or {}
    local text
    if entry then
        local about = about_mod.new(entry, function() return self.entries.set end, self.places.rest)
        local seen = {}
        for ip in pairs(self.affected:ways_to(entry.ip)) do
            for place in pairs(self.places:of(ip)) do
                if not seen[place] and self.places:uses(place) then
                    seen[place] = true
                    about:add(place)
                end
                self.places.rest()
            end
        end
        for key, way in pairs(entry.ways or NONE) do
            for place in pairs(self.places:at(key)) do
                if self.places:uses(place) then
                    about:find(key, way, place)
                end
                self.places.rest()
            end
        end
        text = words.line(id, gen, about:text())
    end
    self.affected.followed[id] = entry and entry.successors
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
        local gen = self.affected:follow(places)
        local dirty = self.affected.dirty
        for id in pairs(dirty) do
            dirty[id] = nil
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
    self.affected = affected_mod.new(self.entries)
    self.lines, self.unwritten = {}, {}
end


--- See places.records.
function _M:records(name)
    return self.places:records(name)
end


--- Takes the word back if discovery has changed the nodes of a place with this address.
function _M:check(ip)
    for way in pairs(self.told and self.affected:ways_to(ip) or NONE) do
        if self.places:moved(way) then
            self.news = true
            void(self)
            return
        end
    end
end


-- Calls `check` for all entries that are not sealed yet, within SHARE of the worker's time.
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
        -- the running check takes in all changes. Only a word that is published and no longer true
        -- must be taken back at once
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
