--- Which configuration this worker has applied: etcd's revision in the etcd modes, the version of a
-- kind of object in the standalone ones. APISIX reads each kind by itself: after etcd was compacted
-- or restored, it may read one kind anew, and another only seconds later.
local ngx      = ngx
local pcall    = pcall
local ipairs   = ipairs
local tonumber = tonumber

local _M = {
    -- the kinds of object that can list nodes, for the subsystem that runs this code
    KINDS = ngx.config.subsystem == "stream" and { "stream_routes", "upstreams", "services" } or {
        "routes", "upstreams", "services", "plugin_configs", "global_rules", "consumers",
        "consumer_groups",
    },
}

local OTHERS = { "ssls", "protos", "secrets", "stream_routes", "plugin_metadata" }


local function of(fetch, kind)
    local ok, object = pcall(fetch, "/" .. kind)
    if not ok or not object then
        return nil
    end
    return tonumber(object.prev_index) or tonumber(object.conf_version) or 0
end


--- @tparam table core apisix.core
-- @treturn number the highest revision of all kinds, 0 if APISIX reports none
-- @treturn table the revision by kind, for those of KINDS that this APISIX has
function _M.read(core)
    local highest, kinds = 0, {}
    local fetch = core.config and core.config.fetch_created_obj
    if not fetch then
        return highest, kinds
    end

    for _, kind in ipairs(_M.KINDS) do
        local revision = of(fetch, kind)
        kinds[kind] = revision
        highest = revision and revision > highest and revision or highest
    end
    for _, kind in ipairs(OTHERS) do
        local revision = of(fetch, kind)
        highest = revision and revision > highest and revision or highest
    end
    return highest, kinds
end


return _M
