--- The addresses of the nodes that have a name. A look-up may take up to 40 seconds if the DNS
-- server is silent. So it runs in a timer, which stores the result here: no reader waits for it.
--
-- Each worker has one DNS client and cache (apisix/core/utils.lua, dns_parse), which its requests
-- use too. So if a name has no answer here, requests have no address of it either. APISIX leaves
-- out a node whose name does not resolve (apisix/utils/upstream.lua, parse_domain_for_nodes).
local ngx       = ngx
local clock_now = require("apisix.drain.clock").now
local setmetatable = setmetatable
local pairs     = pairs
local pcall     = pcall
local type      = type
local min       = math.min
local sort      = table.sort
local concat    = table.concat
local tostring  = tostring
local address   = require("apisix.drain.address")

-- how long a word waits for the first answer about a name, in seconds
local FIRST   = 1
-- pauses before a name that failed is asked for again, in seconds; APISIX logs each failure
local AGAIN   = { 1, 2, 5 }
-- the most look-ups at a time
local AT_ONCE = 64
-- cached answers come without a wait, so after MOST seconds of them requests get a pause of PAUSE
local MOST, PAUSE = 0.0002, 0.001

local _M = {}
local mt = { __index = _M }


--- @tparam table core apisix.core
-- @tparam function news called when a name has a first or another answer
function _M.new(core, news)
    return setmetatable({
        core = core, news = news,
        known = {},     -- { [name] = { began, due, asking, answered, ips, text, fails, turn } }
        open = {},      -- { [item of known] = true }: its name has no answer yet
        queue = {}, first = 1, last = 0, running = 0, turn = 0,
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


local function answer(self, one, ips)
    local text = ips and concat(ips, " ")
    local is_news = not one.answered or text ~= one.text
    one.fails = ips and 0 or min(one.fails + 1, #AGAIN)
    one.due = clock_now() + (AGAIN[one.fails] or 0)
    one.asking, one.answered, one.ips, one.text = nil, true, ips, text
    self.open[one] = nil
    return is_news
end


local function work(premature, self)
    local began = clock_now()
    while not premature and self.first <= self.last do
        local at = self.first
        local one = self.queue[at]
        self.queue[at], self.first = nil, at + 1
        if answer(self, one, resolve(self.core, one.name)) then
            self.has_news = true
        end
        if clock_now() - began >= MOST then
            ngx.sleep(PAUSE)
            began = clock_now()
        end
    end
    self.running = self.running - 1
    if self.has_news and not premature then
        self.has_news = nil
        self.news()
    end
end


local function ask(self, one)
    one.asking = true
    self.last = self.last + 1
    self.queue[self.last] = one
    if self.running < AT_ONCE then
        self.running = self.running + 1
        if not ngx.timer.at(0, work, self) then
            self.running = self.running - 1
        end
    end
end


--- The addresses of a name by the last answer. Asks again if that is due, but does not wait.
-- @treturn table|nil canonical addresses; nil: it does not resolve, or not yet
function _M:of(name)
    local now, one = clock_now(), self.known[name]
    if not one then
        one = { name = name, began = now, due = 0, fails = 0 }
        self.known[name], self.open[one] = one, true
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


--- Is there a name whose first answer may still come soon?
function _M:waits()
    local now = clock_now()
    for one in pairs(self.open) do
        if now - one.began < FIRST then
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
            self.known[name], self.open[one] = nil, nil
        end
    end
end


--- Forgets all of them: an answer that no worker renews proves nothing about the present.
function _M:forget()
    self.known, self.open = {}, {}
end


return _M
