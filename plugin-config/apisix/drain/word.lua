--- This worker's word: what it says of every entry, in the configuration that it routes by now
-- (docs/decisions/0029). Nothing is said, and nothing stays said, that is not so any more:
--
--   the deny-list changed       the word names its generation, and is void for a later one
--   the configuration changed   it is taken back in the step that changes it
--
-- While there is no entry this is one read of the dictionary each time it is asked to look.
local places_mod   = require("apisix.drain.places")
local about_mod    = require("apisix.drain.about")
local words        = require("apisix.drain.words")
local setmetatable = setmetatable
local pcall        = pcall
local ngx          = ngx
local log          = ngx.log
local clock_now    = require("apisix.drain.clock").now
local ngx_sleep    = ngx.sleep

-- a configuration that goes on changing leaves the rest to the next look
local TURNS = 3
-- how often nodes are looked up that are not written down, seconds
local MOVING = 0.25
-- what is left to requests between two parts of what takes long: a sleep of 0 makes the worker one
-- that never waits, and on a busy machine its requests wait for the scheduler
local PAUSE = 0.001

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
        mark = 0, looked = 0, idle = nil, told = nil, busy = false,
    }, mt)
    self.places = places_mod.new(deps.core, function() ngx_sleep(PAUSE) end,
                                 function() void(self) end)
    return self
end


local function speak(self)
    local places = self.places
    for _ = 1, TURNS do
        if not places:refresh() then
            void(self)
            return
        end
        local mark, list = self.mark, self.entries:all()
        local gen = self.entries.set.gen
        local set, about = about_mod.new(list)
        local hidden = places:about(set.ips, function(nodes, name)
            about_mod.add(about, set, nodes, name)
        end)
        -- from here to the telling is one step
        if self.mark == mark and places:holds() then
            self.looked = clock_now()
            local told = words.tell(self.counts, self.number, gen, about, hidden)
            self.told = told and gen or nil
            if self.entries:current().gen == gen then
                return
            end
        end
    end
end


local function look(self)
    local set = self.entries:current()
    if set.n == 0 then
        self.idle = set.gen
        void(self)
        return
    end
    if self.told and not self.places:holds() then
        void(self)
    end
    local is_due = self.places:moves() and clock_now() - self.looked >= MOVING
    if self.told ~= set.gen or is_due then
        speak(self)
    end
end


--- Speaks, where there is anything new to say. It may pause, so it is for timers and requests
-- of the Barrier API only. Never raises.
function _M:look()
    if self.idle == self.entries.dict:get("gen") then
        return
    end
    if self.busy then
        -- whoever is at it will see what came meanwhile, but for a change of what is told already
        if self.told and not self.places:holds() then
            void(self)
        end
        return
    end
    self.busy, self.idle = true, nil
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
