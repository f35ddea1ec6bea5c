--- The barrier's parts in one nginx process.
local entries_mod  = require("apisix.drain.entries")
local cells        = require("apisix.drain.cells")
local source       = require("apisix.drain.source")
local inflight_mod = require("apisix.drain.inflight")
local workers_mod  = require("apisix.drain.workers")
local plan_mod     = require("apisix.drain.plan")
local pick_mod     = require("apisix.drain.pick")
local present      = require("apisix.drain.present")
local kinds_mod    = require("apisix.drain.kinds")
local hooks        = require("apisix.drain.wrappers")
local install      = require("apisix.drain.install")
local l4           = require("apisix.drain.l4")
local settings_mod = require("apisix.drain.settings")
local fetch        = require("apisix.drain.fetch")
local speaker      = require("apisix.drain.speaker")
local ngx          = ngx
local ngx_now      = ngx.now
local clock_now    = require("apisix.drain.host").now
local log          = ngx.log

local BEAT        = 0.25    -- how often a worker checks its configuration revision, seconds
local RECONCILE   = 5
local SWEEP       = 60
local STEP_KB     = 2048
local CLEAR       = 200     -- expired entries cleared away in one beat, at most
local COUNTS      = { "moved", "bypasses", "refused", "errors", "succeeded" }
local IS_HTTP     = ngx.config.subsystem == "http"

local _M = {
    VERSION      = "0.3.0",
    ENTRIES_DICT = "apisix-drain",
    COUNTS_DICT  = "apisix-drain-counts",
}

-- this process. `why`: the reason that makes it unfit. `lost`: a reason that stays (passed_by).
local here = { active = false, hooks = { around = function(send, ...) return send(...) end } }


--- The two dictionaries.
-- @treturn table|nil entries
-- @treturn table|string counts, or what is missing
function _M.dicts()
    local entries, counts = ngx.shared[_M.ENTRIES_DICT], ngx.shared[_M.COUNTS_DICT]
    if not entries or not counts then
        return nil, "lua_shared_dict " .. (entries and _M.COUNTS_DICT or _M.ENTRIES_DICT)
                    .. " is missing: add it to nginx_config.http.custom_lua_shared_dict"
    end
    return entries, counts
end


local function count(what)
    here.counts:incr(what, 1)
end


local function caught(err)
    count("errors")
    here.counts:set("x|" .. here.number, clock_now())
    log(ngx.ERR, "apisix-drain: a hook failed, the request went on without it: ", err)
end


-- Publishes the state of this worker: fit, or why not.
local function tell(why)
    why = why or here.lost
    if why == here.why then
        return
    end

    here.why = why
    if why then
        log(ngx.ERR, "apisix-drain: ", IS_HTTP and "unfit: " or "L4 is not covered: ", why)
    end
    if here.number and why then
        here.counts:safe_set("u|" .. here.number, why)
    elseif here.number then
        here.counts:delete("u|" .. here.number)
    end
end


-- A request has connected past the barrier. It may still be in flight, and what connected it will
-- connect others: only a new process is fit again.
local function passed_by(addr, by)
    if not here.lost then
        here.lost = "a request went to " .. addr .. " past the barrier: " .. by .. " connected it. "
                    .. "Take that out, then reload APISIX"
        tell()
    end
end


-- Is the barrier on? Also checks that the functions that it rests on are in place.
local function holds()
    if here.active then
        tell(install.verify())
    end
    return here.active
end


local function beat(core)
    local counts, number, now = here.counts, here.number, clock_now()
    if now - here.beaten >= 1 then
        here.beaten = now
        counts:set("h|" .. number, ngx_now())
        workers_mod.purge(counts)
        here.kinds:scan()
    end
    holds()

    -- a worker without requests updates its copy too, so that its next pick has a present list
    local set = here.entries:current()
    here.entries:clear(CLEAR)
    -- the revision may also go down: after a restore of etcd, APISIX reads everything again
    local applied, kinds = source.revision(core)
    if applied > 0 and workers_mod.applied(counts, number, here.applied, applied, kinds) then
        counts:set("a|" .. number, ngx_now())
    end

    if now - here.reconciled >= RECONCILE then
        here.reconciled = now
        if set.n > 0 then
            -- an idle worker collects no garbage by itself, and only the collection frees the
            -- counter of a lost request
            collectgarbage("step", STEP_KB)
        end
        local lost = here.inflight:reconcile()
        if lost > 0 then
            log(ngx.WARN, "apisix-drain: ", lost, " requests ended without a log phase")
        end
    end
    if now - here.swept >= SWEEP then
        here.swept = now
        here.inflight:sweep()
        here.entries:tidy()
    end
end


local function on_timer(premature, core)
    if premature then
        here.counts:safe_set("q|" .. here.number, true)
        speaker.stop()
        return
    end
    local ok, err = pcall(beat, core)
    if not ok then
        caught(err)
    end
end


local function register(core, has_l4)
    local entries_dict, counts = _M.dicts()
    if not entries_dict then
        return counts
    end

    for _, name in ipairs(COUNTS) do
        counts:safe_add(name, 0)
    end
    local me, err = workers_mod.register(counts, cells.shared(entries_dict), has_l4)
    if not me then
        return err
    end

    here.counts, here.number = counts, me.number
    here.beaten, here.reconciled, here.swept, here.applied = 0, clock_now(), clock_now(), {}
    here.entries = entries_mod.new(entries_dict)
    here.inflight, err = inflight_mod.new(counts, me.number, me.slot, here.entries)
    if not here.inflight then
        return err
    end

    here.kinds = kinds_mod.new(here.inflight, settings_mod.load(core).stream_after)
    here.plans = plan_mod.new(speaker.records)
    here.pick = pick_mod.new({
        entries = here.entries, inflight = here.inflight, plans = here.plans, count = count,
        present = function(base) return present.of(core, base) end,
    })
    local ok
    ok, err = ngx.timer.every(BEAT, on_timer, core)
    if not ok then
        return "failed to start the timer: " .. err
    end
    speaker.start({
        core = core, entries = here.entries, counts = counts, number = me.number, holds = holds,
    })
    return nil
end


-- Ends a request that no node may serve, as APISIX does if an upstream has no node.
local function turn_away()
    return (IS_HTTP and here.core.response.exit or ngx.exit)(503)
end


local function make_hooks(own)
    here.hooks = hooks.make(own, {
        pick     = here.pick,
        inflight = here.inflight,
        kinds    = here.kinds,
        entries  = here.entries,
        apisix   = package.loaded["apisix"],
        passed_by = passed_by,
        caught   = caught,
        count    = count,
        turn_away = turn_away,
        recreate = require("ngx.balancer").recreate_request,
    })
    return here.hooks
end


--- See wrappers.around.
function _M.around(...)
    return here.hooks.around(...)
end


--- Starts the barrier in this worker. Call it once, in init_worker. Never raises.
function _M.start()
    if not ngx.worker.id() or not (IS_HTTP or _M.dicts()) then
        -- The privileged agent serves no request. The stream subsystem takes part only if both
        -- dictionaries are in the block `lua` of nginx.conf, which both subsystems see.
        return
    end

    local ok, err = pcall(function()
        here.core = require("apisix.core")
        local has_l4, gap = l4.of(here.core)
        local why = register(here.core, has_l4) or not IS_HTTP and gap or nil
        if here.inflight and not why then
            local has_events, event = pcall(require, "apisix.core.event")
            why = install.install({
                balancer = require("apisix.balancer"), apisix = package.loaded["apisix"],
                peers = require("ngx.balancer"), event = has_events and event or nil,
            }, make_hooks)
        end
        here.active = why == nil and here.inflight ~= nil
        tell(why)

        if here.active and IS_HTTP then
            local settings, problems = settings_mod.load(here.core)
            if #problems > 0 then
                log(ngx.WARN, "apisix-drain: ", settings_mod.say(problems))
            end
            here.token = here.token or settings_mod.token(settings)
            fetch.start(here.entries, settings, here.token)
        end
    end)
    if not ok then
        here.active = false
        tell("failed to start: " .. err)
    end
end


--- Returns the token of this gateway (settings.lua), even in a worker whose barrier did not start.
function _M.token()
    if not here.token then
        local ok, core = pcall(require, "apisix.core")
        here.token = settings_mod.token(settings_mod.load(ok and core or {}))
    end
    return here.token
end


--- The dictionaries that the API reads and writes.
-- @treturn table|nil { entries, counts }
-- @treturn string|nil why not
function _M.view()
    local entries_dict, counts = _M.dicts()
    if not entries_dict then
        return nil, counts
    end
    here.entries = here.entries or entries_mod.new(entries_dict)
    return { entries = here.entries, counts = counts }
end


--- The version of APISIX that runs here.
function _M.apisix_version()
    local ok, version = pcall(require, "apisix.core.version")
    return ok and version.VERSION or "unknown"
end


return _M
