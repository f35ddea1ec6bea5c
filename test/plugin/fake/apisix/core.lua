-- A stand-in for apisix.core: only what the plugin and the other stand-ins touch.
local ngx = ngx


local function exit(code, body)
    if body then
        ngx.status = code
        ngx.print(body)
    end
    return ngx.exit(code)
end


local applied = {}


return {
    response = { exit = exit },
    schema = {
        check = function(schema, conf)
            if schema.additionalProperties == false and next(conf) ~= nil then
                return false, "additional properties forbidden"
            end
            return true
        end,
    },
    config = {
        -- set by the nginx.conf of a test
        local_conf = function() return { plugin_attr = { ["apisix-drain"] = FAKE_ATTR } } end,
        fetch_created_obj = function(key) return applied[key] end,
        applied = applied,
    },
}
