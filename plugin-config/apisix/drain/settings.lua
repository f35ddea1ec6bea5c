--- The settings `plugin_attr.apisix-drain` in APISIX's config.yaml.
local type     = type
local pairs    = pairs
local concat   = table.concat
local sort     = table.sort
local str_find = string.find

local KNOWN = {
    token_file       = "string",
    token_env        = "string",
    token            = "string",
    agent            = "string",
    fetch_give_up    = "number",
    stream_after     = "number",
}
local DEFAULTS = { fetch_give_up = 10, stream_after = 10 }

local _M = {}


--- @tparam table|nil attr
-- @treturn table settings, without the wrong ones
-- @treturn table problems, one sentence each
function _M.parse(attr)
    local settings, problems = {}, {}
    for key, value in pairs(DEFAULTS) do
        settings[key] = value
    end

    for key, value in pairs(attr or {}) do
        if not KNOWN[key] then
            problems[#problems + 1] = "plugin_attr.apisix-drain." .. key .. " is not known"
        elseif type(value) ~= KNOWN[key] or value == "" then
            problems[#problems + 1] = "plugin_attr.apisix-drain." .. key .. " must be a "
                                      .. KNOWN[key]
        else
            settings[key] = value
        end
    end

    if settings.agent and not str_find(settings.agent, "^https?://[^/]+/?$") then
        problems[#problems + 1] = "plugin_attr.apisix-drain.agent must be like http://host:port"
        settings.agent = nil
    end
    if settings.stream_after < 0 then
        problems[#problems + 1] = "plugin_attr.apisix-drain.stream_after must be 0 or more seconds"
        settings.stream_after = DEFAULTS.stream_after
    end
    if not (settings.token_file or settings.token_env or settings.token) then
        problems[#problems + 1] = "no token: set plugin_attr.apisix-drain.token_file (or token_env,"
                                  .. " token); the Barrier API refuses every request until then"
    end
    sort(problems)
    return settings, problems
end


--- Reads the settings from APISIX's local configuration.
function _M.load(core)
    local conf = core.config and core.config.local_conf and core.config.local_conf() or {}
    local attrs = type(conf.plugin_attr) == "table" and conf.plugin_attr or {}
    local attr = attrs["apisix-drain"]
    if attr ~= nil and type(attr) ~= "table" then
        local settings, problems = _M.parse(nil)
        problems[#problems + 1] = "plugin_attr.apisix-drain must be a table"
        return settings, problems
    end
    return _M.parse(attr)
end


--- The problems as one text, for error messages.
function _M.say(problems)
    return concat(problems, "; ")
end


return _M
