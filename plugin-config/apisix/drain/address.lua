--- One spelling for every address: no brackets, lower case, IPv6 in its canonical form (RFC 5952).
-- So an entry, a node and a counter of one address have the same string.
local canonical = require("apisix.drain.host").canonical
local str_sub  = string.sub
local str_byte = string.byte
local lower    = string.lower
local str_find = string.find
local tonumber = tonumber

local BRACKET  = str_byte("[")
-- the most addresses that are remembered: churn must not grow a worker's memory for ever
local MAX_KNOWN = 8192

local known, known_n = {}, 0
local _M = { canonical = canonical }


--- A host without the brackets of IPv6.
function _M.bare(host)
    return str_byte(host, 1) == BRACKET and str_sub(host, 2, -2) or host
end


--- An address as it is written in front of a port: IPv6 in brackets.
function _M.written(ip)
    return str_find(ip, ":", 1, true) and "[" .. ip .. "]" or ip
end


local function intern(host, port)
    local bare = _M.bare(host)
    local ip = canonical(bare) or lower(bare)
    return { ip = ip, port = port, id = ip .. "|" .. port }
end


--- The address of a node. The same (host, port) gives the same table while it is remembered, so
-- other modules can cache derived values in that table (inflight.lua: `tally`).
-- @treturn table { ip, port, id = "ip|port" }
function _M.of(host, port)
    local ports = known[host]
    local addr = ports and ports[port]
    if addr then
        return addr
    end

    if known_n >= MAX_KNOWN then
        known, known_n, ports = {}, 0, nil
    end
    if not ports then
        ports = {}
        known[host] = ports
    end

    addr = intern(host, tonumber(port) or port)
    ports[port] = addr
    known_n = known_n + 1
    return addr
end


return _M
