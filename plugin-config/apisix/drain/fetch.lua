--- Asks the agent for the present entries, once in the life of an nginx. So a gateway that starts
-- during a drain does not use the ending pod either. Plain cosockets need no library that APISIX
-- might not ship.
--
--   fetch        "running", "done" or "failed: <why>"
--   fetch-until  when it gives up; after "done": when the gateway is ready (host.now)
local request   = require("apisix.drain.request")
local json      = require("apisix.drain.json")
local clock_now = require("apisix.drain.host").now
local ngx       = ngx
local log       = ngx.log
local concat    = table.concat
local str_match = string.match
local str_sub   = string.sub

local TIMEOUT_MS = 2000
local PAUSE      = 0.5
local MAX_BODY   = 1048576
local CHUNK      = 65536
local MAX_WHY    = 300
-- seconds from the fetch until requests may come: by then all agents know this gateway
local KNOWN      = 2
local WHAT       = "GET /v" .. request.WIRE .. "/barrier-entries"

local _M = {}


local function split(url)
    local scheme, host = str_match(url, "^(https?)://([^/]+)/?$")
    local name, port = str_match(host, "^(.+):(%d+)$")
    return scheme, name or host, tonumber(port) or (scheme == "https" and 443 or 80), host
end


-- HTTP/1.0, so that the answer has no chunks and ends with the connection. The request shows a
-- secret that is made from the token. With that secret an eavesdropper can only read entries; with
-- the token it could write them.
local function exchange(sock, host, token)
    local shown = ngx.encode_base64(ngx.hmac_sha1(token, WHAT))
    local _, err = sock:send(WHAT .. " HTTP/1.0\r\nHost: " .. host
                             .. "\r\nAuthorization: Bearer " .. shown
                             .. "\r\nAccept: application/json\r\n\r\n")
    if err then
        return nil, "failed to send: " .. err
    end

    local line
    line, err = sock:receive("*l")
    if not line then
        return nil, "no answer: " .. err
    end
    local status = str_match(line, "^HTTP/%d%.%d (%d%d%d)")
    if not status then
        return nil, "the agent answered something that is not HTTP"
    end

    repeat
        line, err = sock:receive("*l")
        if not line then
            return nil, "the answer broke off: " .. err
        end
    until line == ""

    local parts, size = {}, 0
    repeat
        local part, rest
        part, err, rest = sock:receive(CHUNK)
        part = part or rest or ""
        size = size + #part
        if size > MAX_BODY then
            return nil, "the answer is longer than " .. MAX_BODY .. " bytes"
        end
        parts[#parts + 1] = part
    until err
    if err ~= "closed" then
        return nil, "the answer broke off: " .. err
    end
    local body = concat(parts)
    if status ~= "200" then
        local said = json.decode(body)
        local why = type(said) == "table" and said.why
        return nil, "the agent answered " .. status
                    .. (type(why) == "string" and ": " .. str_sub(why, 1, MAX_WHY) or "")
    end
    return body
end


local function ask(url, token)
    local scheme, name, port, host = split(url)
    local sock = ngx.socket.tcp()
    sock:settimeout(TIMEOUT_MS)
    local ok, err = sock:connect(name, port)
    if not ok then
        return nil, "failed to connect: " .. err
    end
    if scheme == "https" then
        ok, err = sock:sslhandshake(nil, name, true)
        if not ok then
            sock:close()
            return nil, "failed the TLS handshake: " .. err
        end
    end

    local body
    body, err = exchange(sock, host, token)
    sock:close()
    return body, err
end


-- One attempt. @treturn boolean done @treturn string|nil why not
local function attempt(entries, settings, token)
    local secret, err = token:value()
    if not secret then
        return false, err
    end
    local text
    text, err = ask(settings.agent, secret)
    if not text then
        return false, err
    end
    local list, wrong = request.entries(text)
    if not list then
        return false, "not what an agent says: " .. wrong
    end

    for _, entry in ipairs(list) do
        -- what was removed as of the same revision was removed later
        entry.as_of = entry.as_of and entry.as_of - 0.5
        local ok, why = entries:put(entry)
        if not ok then
            return false, "an entry was not stored: " .. why
        end
    end
    log(ngx.NOTICE, "apisix-drain: ", #list, " entries fetched from the agent")
    return true
end


local function run(premature, entries, settings, token)
    local dict = entries.dict
    local till = dict:get("fetch-until") or 0
    local why = "the worker is exiting"
    while not premature do
        local ok, done, err = pcall(attempt, entries, settings, token)
        if ok and done then
            dict:safe_set("fetch-until", clock_now() + KNOWN)
            dict:safe_set("fetch", "done")
            return
        end

        why = ok and err or done
        if clock_now() + PAUSE >= till or ngx.worker.exiting() then
            break
        end
        ngx.sleep(PAUSE)
    end
    dict:safe_set("fetch", "failed: " .. why)
    log(ngx.ERR, "apisix-drain: gave up fetching entries from the agent: ", why)
end


--- Starts the fetch if an agent is configured, once in the life of the dictionary.
function _M.start(entries, settings, token)
    if not settings.agent then
        return
    end
    entries.dict:safe_add("fetch-until", clock_now() + settings.fetch_give_up)
    if entries.dict:safe_add("fetch", "running") then
        local ok, err = ngx.timer.at(0, run, entries, settings, token)
        if not ok then
            entries.dict:safe_set("fetch", "failed: " .. err)
        end
    end
end


--- May this gateway get requests, or is it still waiting for the entries?
-- @treturn boolean
-- @treturn string|nil why not; or, if the fetch failed, the error
function _M.ready(dict)
    local status, till = dict:get("fetch"), dict:get("fetch-until") or 0
    if status == "done" and clock_now() < till then
        return false, "an agent may not know this gateway yet"
    elseif status ~= "running" then
        return true, status ~= "done" and status or nil
    end
    -- the worker that fetched may have died before it was done
    if clock_now() > till + PAUSE + TIMEOUT_MS / 1000 then
        return true, "failed: it was not finished"
    end
    return false, "fetching the entries that hold from the agent"
end


return _M
