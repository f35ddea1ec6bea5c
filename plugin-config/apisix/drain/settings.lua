--- The settings `plugin_attr.apisix-drain` in APISIX's config.yaml, and the token that they name.
local ngx       = ngx
local clock_now = require("apisix.drain.host").now
local hmac_sha1 = ngx.hmac_sha1
local io_open   = io.open
local os_getenv = os.getenv
local str_match = string.match
local huge      = math.huge
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

-- seconds from one read of the file to the next, and for which the token before stays valid
local REREAD  = 5
local OVERLAP = 60

local _M = {}
local Token = {}
local mt = { __index = Token }


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


local function read(settings)
    if settings.token_file then
        local file, err = io_open(settings.token_file, "r")
        if not file then
            return nil, "failed to read the token: " .. err
        end
        local text = file:read(4096) or ""
        file:close()
        local token = str_match(text, "^%s*(%S+)%s*$")
        return token, not token and "the token file is empty or has spaces in it" or nil
    end
    if settings.token_env then
        local token = os_getenv(settings.token_env)
        return token, not token and "the environment variable of token_env is not set: nginx passes"
                                     .. " on only those named in nginx_config.envs" or nil
    end
    return settings.token, not settings.token and "no token is configured" or nil
end


--- The bearer token. A file is read again every few seconds, so a Secret can be rotated without a
-- reload. The token before the last change stays valid for a minute, because agent and gateway do
-- not read the new token at the same moment.
function _M.token(settings)
    return setmetatable({ settings = settings, read_at = -huge, salt = nil }, mt)
end


local function refresh(self)
    local now = clock_now()
    if now - self.read_at < REREAD then
        return
    end

    self.read_at = now
    local token, err = read(self.settings)
    self.err = err
    if token and token ~= self.token then
        self.old, self.old_until = self.token, now + OVERLAP
        self.token = token
    end
end


--- The token to send with this gateway's requests, or nil and the reason.
function Token:value()
    refresh(self)
    return self.token, self.err
end


-- Compares digests under a secret key, so the time that this takes reveals nothing about the token.
local function same(self, given, token)
    if not self.salt then
        local file = io_open("/dev/urandom", "rb")
        self.salt = file and file:read(20) or tostring(self) .. clock_now()
        if file then
            file:close()
        end
    end
    return hmac_sha1(self.salt, given) == hmac_sha1(self.salt, token)
end


--- Is this the token? @tparam string|nil header the Authorization header
-- @treturn boolean
-- @treturn string|nil what is wrong
function Token:accepts(header)
    refresh(self)
    if not self.token then
        return false, self.err
    end

    local given = header and str_match(header, "^[Bb]earer +(%S+) *$")
    if not given then
        return false, "send Authorization: Bearer <token>"
    end

    local ok = same(self, given, self.token)
    local old = self.old and same(self, given, self.old)
    if ok or (old and clock_now() < self.old_until) then
        return true
    end
    return false, "the token is not the one this gateway was given"
end


return _M
