--- Parsing of requests to the Barrier API: reports the first problem and its place. Unknown fields
-- are ignored.
local address = require("apisix.drain.address")
local json    = require("apisix.drain.json")
local successors = require("apisix.drain.successors")
local ways    = require("apisix.drain.ways")
local floor   = math.floor
local str_find = string.find

local MAX_ITEMS = 1000
local MAX_TTL   = 3600
local MAX_WAIT  = 30
-- every whole number up to it is exact
local MAX_REVISION = 2 ^ 53

local _M = {
    -- the version of the protocol between agents and gateways, which is not that of a release. It
    -- goes up with every change that the other side could misunderstand (docs/decisions/0077)
    WIRE = 1,
}


--- @tparam number version of an agent's request
-- @treturn string|nil why the request is refused, and what to upgrade
function _M.foreign(version)
    if version == _M.WIRE then
        return nil
    end
    return "agent and plugin have different wire versions (" .. version .. " and " .. _M.WIRE
           .. "): upgrade " .. (version > _M.WIRE and "the plugin of this gateway" or "the agents")
end


local function is_list(value)
    if type(value) ~= "table" then
        return false
    end
    local n = 0
    for key in pairs(value) do
        if type(key) ~= "number" then
            return false
        end
        n = n + 1
    end
    return n == #value
end


local function body_of(text)
    local body = json.decode(text)
    if type(body) ~= "table" then
        return nil, "the body is not a JSON object"
    end
    if #body > 0 then
        return nil, "the body is a list, send an object"
    end
    return body
end


local function is_uid(value)
    return type(value) == "string" and str_find(value, "^[%w._:-]+$") ~= nil and #value <= 128
end


-- A text for other agents, and its age in seconds.
local function is_told(text, age)
    return text == nil or type(text) == "string" and #text <= 1024
                          and type(age) == "number" and age >= 0
end


local function entry_of(item, where)
    if type(item) ~= "table" then
        return nil, where .. " is not an object"
    end
    if not is_uid(item.uid) then
        return nil, where .. ".uid must be 1 to 128 letters, digits, '.', '_', ':' or '-'"
    end
    local ip = type(item.ip) == "string" and address.canonical(item.ip)
    if not ip then
        return nil, where .. ".ip must be an IPv4 or IPv6 address without brackets"
    end
    local port = item.port
    if port ~= nil and not (type(port) == "number" and port == floor(port)
                            and port >= 1 and port <= 65535) then
        return nil, where .. ".port must be a whole number from 1 to 65535, or absent"
    end
    if item.state ~= "draining" and item.state ~= "sealed" then
        return nil, where .. ".state must be \"draining\" or \"sealed\""
    end
    local ttl = item.ttl
    if not (type(ttl) == "number" and ttl >= 1 and ttl <= MAX_TTL) then
        return nil, where .. ".ttl must be a number of seconds from 1 to " .. MAX_TTL
    end
    local seal_if = item.sealIf
    if seal_if ~= nil and not (item.state == "sealed" and type(seal_if) == "string") then
        return nil, where .. ".sealIf must be the tag of a word, with the state \"sealed\""
    end
    if not is_told(item.answer, item.answeredFor) then
        return nil, where .. ".answer must be at most 1024 bytes, with answeredFor in seconds"
    end
    if not is_told(item.stop, item.stoppedFor) then
        return nil, where .. ".stop must be at most 1024 bytes, with stoppedFor in seconds"
    end
    local text = {}
    for field, read in pairs({ successors = successors.read, ways = ways.read }) do
        if item[field] ~= nil then
            local wrong
            text[field], wrong = read(item[field], where .. "." .. field)
            if not text[field] then
                return nil, wrong
            end
        end
    end
    return {
        uid = item.uid, ip = ip, port = port, state = item.state, ttl = ttl, seal_if = seal_if,
        successors = text.successors, answer = item.answer, answered_for = item.answeredFor,
        stop = item.stop, stopped_for = item.stoppedFor, ways = text.ways,
    }
end


-- The revision of the API server up to which the caller knows the pods, or nil.
local function revision_of(body)
    local as_of = body.asOf
    if as_of ~= nil and not (type(as_of) == "number" and as_of == floor(as_of) and as_of >= 1
                             and as_of <= MAX_REVISION) then
        return nil, "asOf must be a whole number of at least 1"
    end
    return as_of
end


-- The body with the list in it, each item read by `item_of(item, where)`.
local function with_list(text, name, item_of)
    local body, err = body_of(text)
    local list = body and body[name]
    if not body then
        return nil, err
    end
    if not is_list(list) then
        return nil, name .. " must be a list"
    end
    if #list > MAX_ITEMS then
        return nil, name .. " has " .. #list .. " items, at most " .. MAX_ITEMS
                    .. " are taken at once: send several requests"
    end
    for i, item in ipairs(list) do
        list[i], err = item_of(item, name .. "[" .. i - 1 .. "]")
        if not list[i] then
            return nil, err
        end
    end
    body.as_of, err = revision_of(body)
    if err then
        return nil, err
    end
    return body
end


local function uid_of(uid, where)
    return is_uid(uid) and uid or nil, where .. " must be a pod uid"
end


--- @treturn table|nil entries
-- @treturn string|nil what is wrong
function _M.entries(text)
    local body, err = with_list(text, "entries", entry_of)
    for _, entry in ipairs(body and body.entries or {}) do
        entry.as_of = body.as_of
    end
    return body and body.entries, err
end


--- @treturn table|nil { uids, as_of, stops? }
-- @treturn string|nil what is wrong
function _M.removal(text)
    local body, err = with_list(text, "uids", uid_of)
    if body and body.stops ~= nil and type(body.stops) ~= "table" then
        return nil, "stops must be an object: the text of a stop by uid"
    end
    return body, err
end


--- @treturn table|nil { uids, wait (seconds) }
function _M.inflight(text)
    local body, err = with_list(text, "uids", uid_of)
    if not body then
        return nil, err
    end
    local wait = body.wait == nil and 0 or body.wait
    if not (type(wait) == "number" and wait >= 0 and wait <= MAX_WAIT) then
        return nil, "wait must be a number of seconds from 0 to " .. MAX_WAIT
    end
    return { uids = body.uids, wait = wait }
end


return _M
