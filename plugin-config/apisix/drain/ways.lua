--- Ways to a pod without its address (docs/decisions/0027): what an agent asks for, and what APISIX
-- connects to past its balancer. A question is an address, the key of a name, or a port of any host
-- ("port/30080"). In the dictionary they are sorted text.
local address   = require("apisix.drain.address")
local str_find  = string.find
local str_gsub  = string.gsub
local str_match = string.match
local str_gmatch = string.gmatch

-- the most questions of an entry, and bytes of their text
local MOST, BYTES = 256, 8192
-- plugins of APISIX that connect to an address of their own (docs/ways.md); the last two hold more
local PLUGINS = " ai-* *-logger *-logging authz-* ldap-* limit-* graphql-* forward-auth opa lago "
    .. "openid-connect cas-auth wolf-rbac proxy-mirror openwhisk openfunction aws-lambda syslog "
    .. "azure-functions zipkin oas-validator feishu-auth dingtalk-auth workflow multi-auth "
-- their fields with it: a URL, "host:port", a host with a port beside it; in the last one as keys
local FIELDS = " uri host server endpoint endpoint_addr endpoint_addrs function_uri spec_url"
    .. " api_host ldap_uri discovery introspection_endpoint token_endpoint lakera_endpoint"
    .. " redis_host resource_registration_endpoint redis_cluster_nodes nameserver_list entries_uri"
    .. " token_uri idp_uri http_proxy https_proxy access_token_url userinfo_url broker_list "

-- one table for each text: pods of one workload have the same questions
local known = setmetatable({}, { __mode = "v" })
local _M = {}


--- Puts `on` into a set of `map`, or takes it out. No set is empty.
function _M.mark(map, key, item, on)
    local set = map[key]
    if on then
        set = set or {}
        set[item], map[key] = on, set
    elseif set then
        set[item] = nil
        map[key] = next(set) and set
    end
end


--- All questions of two texts, sorted, or only the first ones if there is no room.
function _M.both(first, second)
    local set, list = {}, {}
    for way in str_gmatch(first .. " " .. second, "%S+") do
        list[#list + 1] = not set[way] and way or nil
        set[way] = true
    end
    table.sort(list)
    local text = table.concat(list, " ")
    return #list <= MOST and #text <= BYTES and text or first
end


--- Reads the field `ways` of an entry that is put.
-- @treturn string|nil as text
-- @treturn string|nil what is wrong
function _M.read(value, where)
    local list, wrong = {}, where .. " must be a list of at most " .. MOST
                            .. " addresses, names and ports, " .. BYTES .. " bytes together"
    for i, way in pairs(type(value) == "table" and value or { false }) do
        local one = type(i) == "number" and type(way) == "string"
                    and (address.canonical(way) or str_match(way, "^[%w._/-]+$"))
        if not one then
            return nil, wrong
        end
        list[#list + 1] = one
    end
    local text = _M.both("", table.concat(list, " "))
    return (text ~= "" or not list[1]) and text, wrong
end


--- @treturn table|nil { [key] = question }: the key is a number for a port
function _M.parse(text)
    local all = known[text or ""]
    if text and not all then
        all = {}
        for way in str_gmatch(text, "%S+") do
            all[tonumber(str_match(way, "^port/(%d+)$")) or way] = way
        end
        known[text] = all
    end
    return all
end


--- Adds a node by name to `list.names`. Its `ip` is a key: `web.shop` for `web.shop.svc` and
-- `pod.web.shop.svc`, under any domain.
function _M.name(list, host, port)
    local name = str_gsub(str_gsub(host:lower(), "%.$", ""), "[^%w._-]", "_")
    list.names = list.names or {}
    list.names[#list.names + 1] = {
        ip = #name < 256 and str_match(name .. ".", "([^.]+%.[^.]+)%.svc%.") or name, port = port,
        name = port and name .. ":" .. port or name,
    }
end


--- Calls `visit` with the nodes of a list, also with those by name. `rest` yields to requests.
function _M.each(list, visit, rest)
    for _, nodes in ipairs({ list, list.names }) do
        for i, node in ipairs(nodes) do
            visit(node)
            if rest and i % 100 == 0 then
                rest()
            end
        end
    end
end


local function is_in(list, name)
    return str_find(list, " " .. name .. " ", 1, true) ~= nil
end


-- Adds the addresses in a plugin's settings, at most so deep, to the keys of `found`.
local function collect(conf, depth, found)
    for field, value in pairs(depth > 0 and type(conf) == "table" and conf or {}) do
        for key, each in pairs(type(value) == "table" and value or { value }) do
            local port = field == "broker_list" and each or conf.port or conf.redis_port
            each = field == "broker_list" and key or each
            if is_in(FIELDS, field) and type(each) == "string" then
                each = str_gsub(str_gsub(each, "^%a[%a+]*://", ""), "^[^/@]*@", "")
                each = str_match(each, "^[^/?#]*")
                port = (address.canonical(each) or not str_find(each, ":%d+$")) and port
                found[port and address.written(address.bare(each)) .. ":" .. port or each] = 1
            end
        end
        collect(value, depth - 1, found)
    end
    return found
end


--- What the plugins of an object connect to by themselves, in known fields of known plugins.
-- @treturn table { [plugin] = { ["host:port"] = 1 } }
function _M.connected(plugins)
    local found = {}
    for plugin, conf in pairs(type(plugins) == "table" and plugins or {}) do
        if is_in(PLUGINS, plugin) or is_in(PLUGINS, (str_gsub(plugin, "%-.*", "-*")))
           or is_in(PLUGINS, (str_gsub(plugin, "^.*%-", "*-"))) then
            local nodes = collect(conf, 8, {})
            found[str_gsub(plugin, "[^%w._-]", "_")] = next(nodes) and nodes
        end
    end
    return found
end


return _M
