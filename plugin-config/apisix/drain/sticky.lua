--- Sessions that a cookie binds to a pod (chash), kept while the pod ends: an entry may ask for it
-- with `keep` (docs/decisions/0066). A bound session is picked from the ring with the pod; a new
-- one from the ring without it. A new session's answer gets a cookie, the marker. It names the kept
-- pods, so that the session stays a new one for them in every gateway.
--
-- An owner may remove the pod from the upstream before the session ends. So a worker notes the
-- node, with its weight, and the ring keeps it until the entry is sealed or gone.
local address  = require("apisix.drain.address")
local level_of = require("apisix.drain.entries").level
local present  = require("apisix.drain.present")
local clock_now = require("apisix.drain.clock").now
local key_of, filled = present.key_of, present.filled
local ngx      = ngx
local ipairs   = ipairs
local pairs    = pairs
local next     = next
local type     = type
local ceil     = math.ceil
local max      = math.max
local concat   = table.concat
local format   = string.format
local str_find = string.find
local str_gmatch = string.gmatch
local setmetatable = setmetatable

local COOKIE = "apisix_drain_new"
-- the most pods in a marker, and rings of a plan; sessions that need more count as new ones
local NAMES, RINGS = 16, 32
-- seconds that a marker outlives the time of its pod
local LONGER = 10
local NONE = {}
local IS_HTTP = ngx.config.subsystem == "http"

local _M = {}
local mt = { __index = _M }


function _M.new()
    return setmetatable({
        notes = {},     -- { [key of the upstream's object] = { [address id] = node } }
    }, mt)
end


--- The variable with the key of a session, if an upstream binds its sessions by a cookie.
-- @treturn string|nil
function _M.variable(base)
    if not IS_HTTP or base.type ~= "chash" or type(base.key) ~= "string" then
        return nil
    end
    if base.hash_on == "cookie" then
        return "cookie_" .. base.key
    end
    local is_variable = base.hash_on == nil or base.hash_on == "vars"
    return is_variable and str_find(base.key, "cookie_", 1, true) == 1 and base.key or nil
end


-- Notes the kept nodes of an upstream, for the time after their removal.
-- @treturn string|nil the key of the upstream's object
local function note(self, base, nodes, set)
    local key = _M.variable(base) and key_of(base)
    if not key then
        return nil
    end
    for _, node in ipairs(nodes) do
        local addr = address.of(node.host, node.port)
        local _, kept = level_of(set, addr)
        if kept then
            self.notes[key] = self.notes[key] or {}
            self.notes[key][addr.id] = node
        end
    end
    return key
end


--- Notes the kept nodes of an upstream that no request has used yet.
-- @tparam table conf the upstream as it is configured @tparam table set from entries
function _M:note(conf, set)
    if type(conf.nodes) == "table" then
        note(self, conf, filled(conf.nodes, conf.scheme or "http") or NONE, set)
    end
end


-- Drops the notes of nodes whose time is over. @treturn table|nil those that are left
local function current(self, key, set)
    local noted = self.notes[key]
    for id, node in pairs(noted or NONE) do
        local _, kept = level_of(set, address.of(node.host, node.port))
        if not kept then
            noted[id] = nil
        end
    end
    if noted and not next(noted) then
        noted = nil
        self.notes[key] = nil
    end
    return noted
end


--- The nodes of an upstream, with those that its owner has removed and that are kept.
-- @treturn table nodes; base.nodes itself if there is none to add
function _M:nodes(base, set)
    local key = set.n > 0 and note(self, base, base.nodes, set)
    local noted = key and current(self, key, set)
    if not noted then
        return base.nodes
    end
    local list, listed = {}, {}
    for i, node in ipairs(base.nodes) do
        list[i] = node
        listed[address.of(node.host, node.port).id] = true
    end
    for id, node in pairs(noted) do
        if not listed[id] then
            list[#list + 1] = node
        end
    end
    return #list > #base.nodes and list or base.nodes
end


--- Drops the notes of nodes whose time is over.
function _M:sweep(set)
    for key in pairs(self.notes) do
        current(self, key, set)
    end
end


local function name_of(kept)
    return format("%08x", ngx.crc32_short(kept.uid))
end


local function marker_of(ctx)
    return ctx.var["cookie_" .. COOKIE] or ""
end


local function is_new(ctx, kept)
    local session = ctx.var[kept.variable]
    return not session or session == ""
end


--- The ring of a bound session.
-- @tparam table kept of the plan: { variable, entries, rings, ring = function(names, entries) }
-- @treturn table|nil a variant; nil: no kept pod may have this request
function _M.ring(ctx, kept)
    if is_new(ctx, kept) then
        return nil
    end
    local marker, named, without = marker_of(ctx), {}, {}
    for _, entry in ipairs(kept.entries) do
        local name = name_of(entry)
        if str_find(marker, name, 1, true) then
            named[#named + 1], without[entry] = name, true
        end
    end
    local names = concat(named)
    local ring = kept.rings[names]
    if not ring and #named < #kept.entries and kept.made < RINGS then
        ring = kept.ring(names, without)
        kept.rings[names], kept.made = ring, kept.made + 1
    end
    return ring
end


--- Adds the marker to the answer if it begins a session. Called in the header filter.
-- @tparam table kept of the plan
function _M.mark(ctx, kept)
    if not is_new(ctx, kept) then
        return
    end
    local names, has, age, now = {}, {}, 0, clock_now()
    for _, entry in ipairs(kept.entries) do
        local name = name_of(entry)
        names[#names + 1], has[name] = name, true
        age = max(age, (entry.kept or now) - now)
    end
    -- the client may have another new session, in another upstream
    for name in str_gmatch(marker_of(ctx), "%x+") do
        if #name == 8 and not has[name] then
            names[#names + 1] = name
        end
    end
    local cookie = COOKIE .. "=" .. concat(names, ".", 1, #names > NAMES and NAMES or #names)
                   .. "; Path=/; HttpOnly; Max-Age=" .. ceil(age) + LONGER
    if ctx.var.scheme == "https" then
        -- so that the browser sends the marker wherever it sends the session's own cookie
        cookie = cookie .. "; Secure; SameSite=None"
    end
    local cookies = ngx.header["Set-Cookie"]
    if type(cookies) == "table" then
        cookies[#cookies + 1] = cookie
    else
        cookies = cookies and { cookies, cookie } or cookie
    end
    ngx.header["Set-Cookie"] = cookies
end


return _M
