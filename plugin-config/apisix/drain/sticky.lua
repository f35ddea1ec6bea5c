--- Sessions that a cookie binds to a pod (chash), kept while the pod ends. An entry asks for that
-- with `keep` (docs/decisions/0066). The node of a bound session is picked from a ring with the
-- pod, and the node of a new session from a ring without the pod. The answer that gives a new
-- session its cookie also sets another cookie, the marker, with the time when the session began.
-- So every gateway treats the session as new for all pods that had begun to end before that time.
--
-- An owner may remove the pod from the upstream before the session ends. So a worker notes the
-- node, with its weight, and the ring has the node as long as the entry keeps its sessions.
local address  = require("apisix.drain.address")
local level_of = require("apisix.drain.entries").level
local present  = require("apisix.drain.present")
local key_of, filled = present.key_of, present.filled
local ngx      = ngx
local ipairs   = ipairs
local pairs    = pairs
local next     = next
local type     = type
local max      = math.max
local format   = string.format
local str_find = string.find
local str_match = string.match
local str_sub  = string.sub
local tonumber = tonumber
local setmetatable = setmetatable

-- the prefix of the marker's name; the name of the session's cookie follows
local MARKER = "apisix_drain_new_"
-- seconds by which the clocks of gateways may differ, with the fraction that ngx.time drops
local APART = 1
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


-- Drops the notes of nodes that no entry keeps any more. @treturn table|nil the notes that are left
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


--- The nodes of an upstream, plus the kept nodes that its owner has removed.
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


--- Drops the notes of nodes that no entry keeps any more.
function _M:sweep(set)
    for key in pairs(self.notes) do
        current(self, key, set)
    end
end


-- The name of the cookie that a variable stands for.
local function cookie_of(variable)
    return str_sub(variable, #"cookie_" + 1)
end


local function checksum(session)
    return format("%08x", ngx.crc32_short(session))
end


-- The second in which a session began, by its marker. nil: the session has no marker that fits, so
-- it counts as older than the end of every pod.
local function began(ctx, variable, session)
    local marker = ctx.var["cookie_" .. MARKER .. cookie_of(variable)]
    local sum, second = str_match(marker or "", "^(%x+)%.(%d+)$")
    return sum == checksum(session) and tonumber(second) or nil
end


--- The ring of a bound session.
-- @tparam table kept of the plan: { variable, entries, rings, ring = function(from) }; the entries
--   in the order in which their pods began to end
-- @treturn table|nil a variant; nil: no kept pod may have this request
function _M.ring(ctx, kept)
    local session = ctx.var[kept.variable]
    if not session or session == "" then
        return nil
    end
    local second, from, entries = began(ctx, kept.variable, session), 1, kept.entries
    while second and entries[from] and entries[from].began <= second do
        from = from + 1
    end
    if not entries[from] then
        return nil
    end
    kept.rings[from] = kept.rings[from] or kept.ring(from)
    return kept.rings[from]
end


-- The last value that an answer gives to a cookie.
-- @treturn string|nil value; nil: the answer does not set the cookie
-- @treturn string|nil the attributes of the cookie
local function set_by(cookies, name)
    local value, attributes
    for _, cookie in ipairs(type(cookies) == "table" and cookies or { cookies }) do
        if str_find(cookie, name .. "=", 1, true) == 1 then
            value, attributes = str_match(cookie, "^%s*([^;]-)%s*(;.*)$", #name + 2)
            value = value or str_sub(cookie, #name + 2)
        end
    end
    return value, attributes or ""
end


--- Adds the marker to an answer that begins a session. Called in the header filter, if no kept pod
-- has answered. The marker has the attributes of the session's cookie, so the client sends and
-- drops both together. If an answer repeats the cookie, it repeats the marker too.
-- @tparam table kept of the plan
function _M.mark(ctx, kept)
    local cookies, name = ngx.header["Set-Cookie"], cookie_of(kept.variable)
    local session, attributes = set_by(cookies, name)
    if not session or session == "" then
        return
    end
    local second
    if session == ctx.var[kept.variable] then
        second = began(ctx, kept.variable, session)
        if not second then
            return
        end
    else
        second = ngx.time()
        for _, entry in ipairs(kept.entries) do
            second = max(second, entry.began)
        end
        second = second + APART
    end
    local cookie = MARKER .. name .. "=" .. checksum(session) .. "." .. second .. attributes
    if type(cookies) == "table" then
        cookies[#cookies + 1] = cookie
    else
        cookies = { cookies, cookie }
    end
    ngx.header["Set-Cookie"] = cookies
end


return _M
