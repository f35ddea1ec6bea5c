--- The bearer token. A file is read again every few seconds, so a Secret can be rotated without a
-- reload. The token before the last change stays valid for a minute, because agent and gateway do
-- not read the new token at the same moment.
local ngx       = ngx
local clock_now = require("apisix.drain.host").now
local hmac_sha1 = ngx.hmac_sha1
local io_open   = io.open
local os_getenv = os.getenv
local str_match = string.match
local setmetatable = setmetatable
local huge      = math.huge

local REREAD  = 5
local OVERLAP = 60

local _M = {}
local mt = { __index = _M }


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


function _M.new(settings)
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
function _M:value()
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
function _M:accepts(header)
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
