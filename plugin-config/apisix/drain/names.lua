--- The addresses of nodes that have a name, and the nodes that discovery finds by DNS. A look-up
-- may take up to 40 seconds if the DNS server is silent. So it runs in a timer, which stores the
-- result here: no reader waits for it.
--
-- Each worker has one DNS client and cache (apisix/core/utils.lua, dns_parse), which its requests
-- use too. So a look-up knows at once what requests know. One that has to ask a server hides only
-- the places with that name: requests have no address of it either. APISIX leaves out a node whose
-- name does not resolve (apisix/utils/upstream.lua, parse_domain_for_nodes).
local ngx       = ngx
local clock_now = require("apisix.drain.host").now
local min       = math.min
local sort      = table.sort
local concat    = table.concat
local address   = require("apisix.drain.address")

-- pauses before a name that failed is asked for again, in seconds; APISIX logs each failure
local AGAIN   = { 1, 2, 5 }
-- the most look-ups at a time in each lane. Names that failed have a lane of their own: each of
-- their look-ups may take the longest time
local AT_ONCE = 64
-- cached answers come without a wait, so after MOST seconds of them requests get a pause of PAUSE
local MOST, PAUSE = 0.0002, 0.001

local _M = {}
local mt = { __index = _M }


local function new_lane()
    return {
        queue = {}, first = 1, last = 0,
        fresh = 0,      -- how many names in the queue have no answer yet
        running = 0,    -- timers that take names from the queue
        asking = 0,     -- those of them that wait for an answer
    }
end


--- @tparam table core apisix.core
-- @tparam function news called when a name has a first or another answer
function _M.new(core, news)
    return setmetatable({
        core = core, news = news,
        known = {},  -- { [name] = { due, asking, fresh, answered, ips, text, fails, turn } }
        lanes = { new_lane(), new_lane() }, turn = 0,
    }, mt)
end


-- All records of a name, because each request takes any of them. They are sorted, because the order
-- of a server's answer varies.
-- @treturn table|nil nil if the name does not resolve
local function resolve(core, name)
    local resolver = core.resolver or {}
    if not resolver.parse_domain_all then
        return nil
    end
    local ok, found = pcall(resolver.parse_domain_all, name)
    if not ok or type(found) ~= "table" or #found == 0 then
        return nil
    end
    local ips = {}
    for i = 1, #found do
        local ip = address.canonical(tostring(found[i]))
        if not ip then
            return nil
        end
        ips[i] = ip
    end
    sort(ips)
    return ips
end


-- @treturn string text that is the same for the same addresses, or the same nodes
local function text_of(found)
    local list = {}
    for i, each in ipairs(found) do
        list[i] = type(each) ~= "table" and each or concat({ tostring(each.host),
                  tostring(each.port), tostring(each.weight), tostring(each.priority) }, " ")
    end
    sort(list)
    return concat(list, ",")
end


local function answer(one, ips)
    local text = ips and text_of(ips)
    local is_news = not one.answered or text ~= one.text
    one.fails = ips and 0 or min(one.fails + 1, #AGAIN)
    one.due = clock_now() + (AGAIN[one.fails] or 0)
    one.asking, one.answered, one.ips, one.text = nil, true, ips, text
    return is_news
end


-- Takes the next name from the queue.
local function take(lane)
    local one = lane.queue[lane.first]
    lane.queue[lane.first], lane.first = nil, lane.first + 1
    lane.fresh = lane.fresh - (one.fresh and 1 or 0)
    return one
end


local function work(premature, self, lane)
    local began = clock_now()
    while not premature and lane.first <= lane.last do
        local one = take(lane)
        if self.known[one.name] == one then
            lane.asking = lane.asking + 1
            self.has_news = answer(one, (one.find or resolve)(self.core, one.name)) or self.has_news
            lane.asking = lane.asking - 1
        end
        if clock_now() - began >= MOST then
            ngx.sleep(PAUSE)
            began = clock_now()
        end
    end
    lane.running = lane.running - 1
    if self.has_news and not premature then
        self.has_news = nil
        self.news()
    end
end


local function ask(self, one)
    local lane = self.lanes[one.fails > 0 and 2 or 1]
    one.asking, one.fresh = true, not one.answered
    lane.last = lane.last + 1
    lane.queue[lane.last] = one
    lane.fresh = lane.fresh + (one.fresh and 1 or 0)
    if lane.running < AT_ONCE then
        lane.running = lane.running + 1
        if not ngx.timer.at(0, work, self, lane) then
            lane.running = lane.running - 1
        end
    end
end


--- The addresses of a name by the last answer. Asks again if that is due, but does not wait.
-- @tparam function|nil find called in place of a look-up of the name; returns nodes, and may wait
-- @treturn table|nil canonical addresses, or nodes; nil: it does not resolve, or not yet
function _M:of(name, find)
    local now, one = clock_now(), self.known[name]
    if not one then
        one = { name = name, find = find, due = 0, fails = 0 }
        self.known[name] = one
    end
    one.turn = self.turn
    if not one.asking and now >= one.due then
        ask(self, one)
    end
    return one.ips
end


--- The addresses of a name by the last answer; nil if no place uses the name. Sends no query.
-- @treturn table|nil
function _M:latest(name)
    local one = self.known[name]
    return one and one.ips
end


--- Is there a name without an answer whose look-up is about to begin? What requests know of it is
-- then known at once.
function _M:waits()
    for _, lane in ipairs(self.lanes) do
        if lane.fresh > 0 and lane.asking < lane.running then
            return true
        end
    end
    return false
end


--- Begins a pass over all names that are in use: see finish.
function _M:begin()
    self.turn = self.turn + 1
end


--- Forgets the names that no call of `of` has named since `begin`.
function _M:finish()
    for name, one in pairs(self.known) do
        if one.turn ~= self.turn then
            self.known[name] = nil
        end
    end
end


--- Forgets the answers: one that no worker renews proves nothing about the present.
function _M:forget()
    for _, one in pairs(self.known) do
        one.due, one.answered, one.ips, one.text = 0, nil, nil, nil
    end
end


return _M
