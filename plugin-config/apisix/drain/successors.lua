--- The addresses that take over from an ending pod. The agent names them in the entry of that pod
-- (docs/decisions/0042). A worker uses them in places whose free nodes are gone, down, or failed.
-- In the dictionary they are text: "8080=10.0.0.5:8080,[fd00::1]:8080;9090=10.0.0.5:9090". In front
-- of the "=" is the port of the pod that ends.
local address   = require("apisix.drain.address")
local json      = require("apisix.drain.json")
local concat    = table.concat
local sort      = table.sort
local str_match = string.match
local str_gmatch = string.gmatch

-- the most addresses for a port, and ports of an entry
local MOST, PORTS = 16, 16
-- A successor may end too, and its own entry then names the next successors. STEPS is the most
-- entries in such a chain
local STEPS = 8

local _M = { MOST = MOST, PORTS = PORTS }
-- one table for each text: entries of one workload often have the same successors
local known = setmetatable({}, { __mode = "v" })


local function is_port(port)
    return port ~= nil and port >= 1 and port <= 65535
end


-- @treturn string|nil "address:port" with the address in its canonical form
local function canonical(name)
    local host, port = str_match(name, "^(.+):(%d+)$")
    local bare = host and (str_match(host, "^%[(.+)%]$") or host)
    local ip = bare and address.canonical(bare)
    if not ip or not is_port(tonumber(port)) then
        return nil
    end
    return address.written(ip) .. ":" .. tonumber(port)
end


local function list_of(names, where)
    if type(names) ~= "table" then
        return nil, where .. " must be a list of \"address:port\""
    end
    local list, n = {}, 0
    for _ in pairs(names) do
        n = n + 1
    end
    for i, name in ipairs(names) do
        list[i] = type(name) == "string" and canonical(name) or nil
        if not list[i] then
            return nil, where .. "[" .. i - 1 .. "] must be \"address:port\", IPv6 in brackets"
        end
    end
    if n ~= #list or n > MOST then
        return nil, where .. " must be a list of at most " .. MOST .. " addresses"
    end
    return list
end


--- Reads the field `successors` of an entry that is put.
-- @tparam any value { ["8080"] = { "10.0.0.5:8080" } }
-- @tparam string where the name of the field, for the message
-- @treturn string|nil as text; empty if there are none
-- @treturn string|nil what is wrong
function _M.read(value, where)
    if type(value) ~= "table" then
        return nil, where .. " must be an object: a list of addresses for each port"
    end
    local parts = {}
    for key, names in pairs(value) do
        local port = tonumber(key)
        if not is_port(port) or tostring(port) ~= key then
            return nil, where .. " has a key that is not a port: " .. tostring(key)
        end
        local list, wrong = list_of(names, where .. "[\"" .. key .. "\"]")
        if not list then
            return nil, wrong
        end
        if #list > 0 then
            parts[#parts + 1] = key .. "=" .. concat(list, ",")
        end
    end
    if #parts > PORTS then
        return nil, where .. " has " .. #parts .. " ports, at most " .. PORTS .. " are taken"
    end
    sort(parts)
    return concat(parts, ";")
end


--- @tparam string|nil text
-- @treturn table|nil { by_port = { [port] = { address.of } }, ips = { [ip] = true } }
function _M.parse(text)
    if not text or text == "" then
        return nil
    end
    local all = known[text]
    if not all then
        all = { by_port = {}, ips = {} }
        for port, names in str_gmatch(text, "(%d+)=([^;]+)") do
            local list = {}
            for host, to in str_gmatch(names, "([^,]+):(%d+)") do
                local addr = address.of(host, tonumber(to))
                list[#list + 1] = addr
                all.ips[addr.ip] = true
            end
            all.by_port[tonumber(port)] = list
        end
        known[text] = all
    end
    return all
end


--- The successors of an entry as they are put.
-- @tparam table all the result of `parse`
-- @treturn table { ["8080"] = { "10.0.0.5:8080" } }
function _M.names(all)
    local names = {}
    for port, list in pairs(all.by_port) do
        local one = json.list()
        for i, to in ipairs(list) do
            one[i] = address.written(to.ip) .. ":" .. to.port
        end
        names[tostring(port)] = one
    end
    return names
end


--- Adds the successors of an address to `found`, if they have no entry. If a successor has an
-- entry, the function continues with the successors that this entry names.
-- @tparam table set the deny-list
-- @tparam table addr { ip, port }
-- @tparam function level entries.level
-- @tparam table seen the addresses that were found before, by their ids
-- @tparam table found the list to which they are added; the list `found.soft`, if there is one,
--   gets the draining successors
-- @tparam number|nil step of the chain
function _M.add(set, addr, level, seen, found, step)
    for _, entry in ipairs(set.ips[addr.ip] or {}) do
        local list = entry.successors and (not entry.port or entry.port == addr.port)
                     and entry.successors.by_port[addr.port]
        for _, to in ipairs(list or {}) do
            if not seen[to.id] then
                seen[to.id] = to
                local state = level(set, to)
                if not state then
                    found[#found + 1] = to
                else
                    if state == "draining" and found.soft then
                        found.soft[#found.soft + 1] = to
                    end
                    if (step or 1) < STEPS then
                        _M.add(set, to, level, seen, found, (step or 1) + 1)
                    end
                end
            end
        end
    end
end


return _M
