--- The highest configuration revision that this worker has applied: etcd's revision in the etcd
-- modes, the highest version of any resource in the standalone ones.
local pcall    = pcall
local ipairs   = ipairs
local tonumber = tonumber

local KEYS = {
    "/routes", "/upstreams", "/services", "/plugin_configs", "/global_rules", "/consumers",
    "/consumer_groups", "/ssls", "/protos", "/secrets", "/stream_routes", "/plugin_metadata",
}

local _M = {}


--- @tparam table core apisix.core
-- @treturn number 0 when APISIX does not tell
function _M.read(core)
    local fetch = core.config and core.config.fetch_created_obj
    if not fetch then
        return 0
    end

    local highest = 0
    for _, key in ipairs(KEYS) do
        local ok, object = pcall(fetch, key)
        if ok and object then
            local revision = tonumber(object.prev_index) or tonumber(object.conf_version) or 0
            highest = revision > highest and revision or highest
        end
    end
    return highest
end


return _M
