--- The Barrier API (docs/barrier-api.md), for a server of its own:
--   content_by_lua_block { require("apisix.drain.api").serve() }
local runtime  = require("apisix.drain.runtime")
local request  = require("apisix.drain.request")
local cells    = require("apisix.drain.cells")
local answers  = require("apisix.drain.answers")
local json     = require("apisix.drain.json")
local fetch    = require("apisix.drain.fetch")
local clock_now = require("apisix.drain.host").now
local speaker  = require("apisix.drain.speaker")
local ngx      = ngx
local io_open  = io.open
local max      = math.max
local min      = math.min
local str_match = string.match

local MAX_BODY = 1048576
-- seconds between two checks of a long poll; more entries make them rarer, which bounds the cost
local LOOK, LOOK_PER_ENTRY, LOOK_MOST = 0.005, 0.0002, 0.1

local _M = {}


local function answer(status, body)
    body.wire = request.WIRE
    local text = json.encode(body)
    ngx.status = status
    ngx.header["Content-Type"] = "application/json"
    ngx.header["Content-Length"] = #text
    ngx.print(text)
end


local function wrong(status, message)
    return answer(status, { error_msg = message })
end


-- @treturn string|nil body @treturn number|nil status if it failed @treturn string|nil why
local function read_body()
    if (tonumber(ngx.var.http_content_length) or 0) > MAX_BODY then
        return nil, 413, "the body is over " .. MAX_BODY .. " bytes: send several requests"
    end

    ngx.req.read_body()
    local body = ngx.req.get_body_data()
    local path = not body and ngx.req.get_body_file()
    if path then
        local file, err = io_open(path, "rb")
        if not file then
            return nil, 400, "failed to read the body: " .. err
        end
        body = file:read(MAX_BODY + 1)
        file:close()
    end
    if body and #body > MAX_BODY then
        return nil, 413, "the body is over " .. MAX_BODY .. " bytes: send several requests"
    end
    return body or ""
end


-- Reads the body with `parse` and passes the result on, or answers with the problem.
local function with(parse, handle)
    return function(barrier)
        local body, status, err = read_body()
        if not body then
            return wrong(status, err)
        end
        local input
        input, err = parse(body)
        if not input then
            return wrong(400, err)
        end
        return handle(barrier, input)
    end
end


-- Writes all entries. An entry whose seal has a condition is draining until `seal` has checked it.
-- @treturn table the errors, by position in the list
-- @treturn table the positions of the entries whose seal has a condition
local function store(barrier, list)
    local failed, conditional = {}, {}
    for i, entry in ipairs(list) do
        if entry.seal_if then
            entry.state = barrier.entries.DRAINING
            conditional[#conditional + 1] = i
        end
        local ok, err = barrier.entries:put(entry)
        failed[i] = not ok and err or nil
    end
    return failed, conditional
end


-- The number of the newest change of these entries: words must be from that generation or later.
local function newest(barrier, list)
    local gen = 0
    for _, entry in ipairs(list) do
        gen = max(gen, barrier.entries:since(barrier.entries.id_of(entry)) or 0)
    end
    return gen
end


local function seal(barrier, list, conditional, failed)
    for _, i in ipairs(conditional) do
        local entry = list[i]
        speaker.check(entry.ip)
        if not failed[i] and answers.still_says(barrier, entry) then
            entry.state = barrier.entries.SEALED
            local ok, err = barrier.entries:put(entry)
            failed[i] = not ok and err or nil
        end
    end
end


local function put(barrier, list)
    local failed, conditional = store(barrier, list)

    -- everything is written; only now is anything read (steps 3 and 4 of the guarantee)
    local body = answers.base(barrier)
    if #conditional > 0 or ngx.var.arg_words == "true" then
        local heard = speaker.hear(barrier, newest(barrier, list))
        seal(barrier, list, conditional, failed)
        if heard or #conditional > 0 then
            body = answers.base(barrier)
        end
    end
    body.entries = json.list()
    local full = false
    for i, entry in ipairs(list) do
        local found = not failed[i] and barrier.entries:find(entry)
        if found then
            body.entries[i] = answers.entry(barrier, found)
        else
            full = full or (failed[i] ~= nil and failed[i] ~= barrier.entries.OUTDATED)
            body.entries[i] = {
                uid = entry.uid, ip = entry.ip, port = entry.port,
                error = failed[i] or "removed by another request",
            }
        end
    end

    if full then
        body.error_msg = "not every entry was stored: enlarge " .. runtime.ENTRIES_DICT
                         .. " in nginx_config.http.custom_lua_shared_dict"
    end
    return answer(full and 507 or 200, body)
end


local function remove(barrier, input)
    local removed = barrier.entries:remove(input.uids, input.as_of, input.stops or {})
    return answer(200, { instance = cells.instance(barrier.entries.dict), removed = removed })
end


-- Is any of these pods idle? It has no ordinary request in flight on any of its entries.
local function any_idle(told)
    local busy = {}
    for _, entry in ipairs(told) do
        busy[entry.uid] = (busy[entry.uid] or 0) + entry.inflight.requests
    end
    for _, n in pairs(busy) do
        if n == 0 then
            return true
        end
    end
    return false
end


local function inflight(barrier, input)
    local deadline = clock_now() + input.wait
    while true do
        local found, unknown = barrier.entries:of_uids(input.uids)
        local body = answers.base(barrier)
        body.entries, body.unknown = json.list(), json.list(unknown)
        for i, entry in ipairs(found) do
            body.entries[i] = answers.entry(barrier, entry)
        end

        local now = clock_now()
        if now >= deadline or #found == 0 or any_idle(body.entries) or ngx.worker.exiting() then
            return answer(200, body)
        end
        ngx.sleep(max(0.001, min(LOOK_MOST, LOOK + #found * LOOK_PER_ENTRY, deadline - now)))
    end
end


local function state(barrier)
    return answer(200, answers.state(barrier, ngx.var.arg_entries, ngx.var.arg_words == "false"))
end


local ROUTES = {
    entries  = { PUT = with(request.entries, put), DELETE = with(request.removal, remove) },
    inflight = { POST = with(request.inflight, inflight) },
    state    = { GET = state },
}


local function ready()
    local dict, missing = runtime.dicts()
    if not dict then
        -- the agent sees that this gateway is unfit; it serves as it would without the plugin
        return answer(200, { ready = true, why = missing })
    end
    local ok, why = fetch.ready(dict)
    return answer(ok and 200 or 503, { ready = ok, why = why })
end


--- Answers one request of the Barrier API. The path has the wire version of the caller. Probes of
-- `ready` do not depend on it.
function _M.serve()
    local path, method = ngx.var.uri, ngx.req.get_method()
    local version, what = str_match(path, "^/v(%d+)/barrier/(.+)$")
    if what == "ready" then
        if method ~= "GET" then
            ngx.header["Allow"] = "GET"
            return wrong(405, "use GET")
        end
        return ready()
    end

    local token = runtime.token()
    local ok, why = token:accepts(ngx.var.http_authorization)
    if not ok then
        ngx.header["WWW-Authenticate"] = "Bearer"
        return wrong(401, why)
    end

    local foreign = version and request.foreign(tonumber(version))
    if foreign then
        return wrong(409, foreign)
    end
    local methods = ROUTES[what]
    if not methods then
        return wrong(404, "there is no " .. path .. " here")
    end
    local handle = methods[method]
    if not handle then
        local allowed = {}
        for name in pairs(methods) do
            allowed[#allowed + 1] = name
        end
        table.sort(allowed)
        ngx.header["Allow"] = table.concat(allowed, ", ")
        return wrong(405, "use " .. table.concat(allowed, " or "))
    end

    local barrier, missing = runtime.view()
    if not barrier then
        return wrong(503, missing)
    end
    return handle(barrier)
end


return _M
