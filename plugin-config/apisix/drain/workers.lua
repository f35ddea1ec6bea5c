--- The workers that serve. Each takes a slot in the dictionary of counts, with a number that no
-- other process ever gets, and writes a sign of life.
--
--   worker-seq         the last number given
--   s|slot             true once the slot was ever taken: the list ends at the first absent one
--   w|slot             "number id pid start" of the process that holds the slot. HTTP and stream
--                      subsystem have a slot each. The latter's text ends with " stream"; the
--                      former's with " l4" if the process has both
--   h|number           last sign of life (seconds since the epoch)
--   v|number           highest configuration revision that the worker has applied
--   v|number|kind      the same for one kind of object; -1: this APISIX does not have the kind
--   a|number           when the worker last saw one of these revisions change
--   x|number           when a hook of the plugin last failed in the worker (host.now); 0: never
--   u|number           why the worker is unfit; absent if it is fit
--   d|number           which deny-list the worker reads, and how it counts: see instance.shared
--   q|number           true if the worker only finishes its requests (reload)
--
-- Once the worker is registered, each write to h|, v|, a| and x| replaces a number by a number. So
-- a full dictionary cannot make these writes fail.
local host         = require("apisix.drain.host")
local totals       = require("apisix.drain.totals")
local words        = require("apisix.drain.word_store")
local source       = require("apisix.drain.source")
local ngx          = ngx
local ngx_now      = ngx.now
local clock_now    = host.now
local str_match    = string.match

local MAX_SLOTS = 512
-- seconds that a worker is unfit after an error in a hook: a request may have passed uncounted
local ERROR_HOLD = 60
-- how many of the last numbers keep the mark that they were purged
local KEPT = 1000
-- the keys that a registered worker always has, and those that it may have, each with "|number"
local KEYS = { "h|", "v|", "a|", "x|", "d|" }
local ALL = { "h|", "v|", "a|", "x|", "d|", "u|", "q|", "wake|" }
local STREAM, L4 = " stream", " l4"

local _M = {}


-- Takes the lowest free slot, and marks it (s|) before that, so every reader finds it. A single key
-- with the highest slot would be unsafe: workers that register at the same moment could lower it.
local function slot_of(dict, text)
    for slot = 1, MAX_SLOTS do
        local _, err = dict:safe_add("s|" .. slot, true)
        if err and err ~= "exists" then
            return nil
        end
        if dict:safe_add("w|" .. slot, text) then
            return slot
        end
    end
    return nil
end


--- Registers this process.
-- @tparam string shared the result of instance.shared
-- @tparam boolean has_l4 whether the process has a stream subsystem
-- @treturn table|nil { number, slot }
-- @treturn string|nil error
function _M.register(dict, shared, has_l4)
    dict:safe_add("worker-seq", 0)
    local number = dict:incr("worker-seq", 1)
    if not number then
        return nil, "no memory in the dictionary of counts"
    end

    local first = {}
    for _, key in ipairs(KEYS) do
        first[key .. number] = key == "d|" and shared or 0
    end
    for _, kind in ipairs(source.KINDS) do
        first["v|" .. number .. "|" .. kind] = -1
    end
    for key, value in pairs(first) do
        local ok, err = dict:safe_set(key, value)
        if not ok then
            return nil, "failed to register the worker: " .. err
        end
    end

    local pid = ngx.worker.pid()
    local slot = slot_of(dict, number .. " " .. ngx.worker.id() .. " " .. pid .. " "
                               .. host.started(pid)
                               .. (ngx.config.subsystem == "stream" and STREAM
                                   or has_l4 and L4 or ""))
    if not slot then
        return nil, "no slot is free for this worker"
    end
    dict:set("h|" .. number, ngx_now())
    return { number = number, slot = slot }
end


--- Publishes which configuration this worker has applied.
-- @tparam table told the state that this worker published last; updated
-- @tparam number highest the highest revision of all kinds
-- @tparam table kinds see source.revision
-- @treturn boolean whether anything changed
function _M.applied(dict, number, told, highest, kinds)
    local news = told.highest ~= highest
    if news then
        dict:set("v|" .. number, highest)
    end
    for kind, value in pairs(kinds) do
        if told[kind] ~= value then
            dict:set("v|" .. number .. "|" .. kind, value)
            told[kind], news = value, true
        end
    end
    told.highest = highest
    return news
end


--- The revisions by kind of object, for the kinds that this APISIX has.
function _M.revisions(dict, number)
    local kinds = {}
    for _, kind in ipairs(source.KINDS) do
        local value = dict:get("v|" .. number .. "|" .. kind)
        kinds[kind] = value and value >= 0 and value or nil
    end
    return kinds
end


--- Every registered process that is still there.
-- @treturn table list of { number, slot, id, pid, fit, unfit, seen, revision, applied,
-- exiting, shared, stream, l4 }; `stream`: the item is the stream subsystem of its process
-- @treturn table the same for processes that are gone
function _M.list(dict)
    local living, dead = {}, {}
    local slot = 0
    while dict:get("s|" .. slot + 1) do
        slot = slot + 1
        local number, id, pid, start, mark =
            str_match(dict:get("w|" .. slot) or "", "^(%d+) (%d+) (%d+) (%d*)(.*)$")
        if number then
            local worker = {
                number = tonumber(number), slot = slot, id = tonumber(id), pid = tonumber(pid),
                seen = dict:get("h|" .. number) or 0,
                revision = dict:get("v|" .. number) or 0,
                applied = dict:get("a|" .. number) or 0,
                exiting = dict:get("q|" .. number) == true,
                unfit = dict:get("u|" .. number),
                shared = dict:get("d|" .. number),
                stream = mark == STREAM, l4 = mark == L4,
            }
            local failed = dict:get("x|" .. number) or 0
            if not worker.unfit and failed > 0 and clock_now() - failed < ERROR_HOLD then
                worker.unfit = "a hook failed less than " .. ERROR_HOLD .. " s ago, see error.log"
            end
            worker.fit = worker.unfit == nil
            local list = host.alive(worker.pid, start) and living or dead
            list[#list + 1] = worker
        end
    end
    return living, dead
end


--- The numbers of the workers in a list, for totals.read.
function _M.numbers(list)
    local numbers = {}
    for i, worker in ipairs(list) do
        numbers[i] = worker.number
    end
    return numbers
end


local function by_pid(living)
    local known = {}
    for _, worker in ipairs(living) do
        known[worker.pid] = known[worker.pid] or not worker.stream
    end
    return known
end


-- Workers that serve and are not registered here. A starting worker does not serve yet: nginx runs
-- init_worker, in which the plugin registers the worker, before it accepts a connection.
-- @treturn table|nil pids; nil if /proc does not show them @treturn boolean see host.family
local function strangers(dict, living)
    local suspects, second = host.family(by_pid(living))
    if not suspects or #suspects == 0 then
        return suspects, second
    end

    -- a suspect may have registered, or ended, since `living` was read
    local known, found = by_pid((_M.list(dict))), {}
    for _, pid in ipairs(suspects) do
        if not known[pid] and host.serves(pid) then
            found[#found + 1] = pid
        end
    end
    return found, second
end


-- Without a view of /proc: a reason for each worker id that nginx should run and that has not
-- registered.
local function missing(living, count)
    local serving, reasons = {}, {}
    for _, worker in ipairs(living) do
        serving[worker.id] = serving[worker.id] or not (worker.exiting or worker.stream)
    end
    for id = 0, count - 1 do
        if not serving[id] then
            reasons[#reasons + 1] = "worker " .. id .. " has not registered"
        end
    end
    return reasons
end


--- May the agent rely on the answers of this process? Only if every worker that serves is
-- registered here and fit. The requests of an unregistered worker are unknown here. Such a worker
-- has not loaded the plugin, or it is older than a reload that resized the dictionary of counts.
-- A worker that has another deny-list, or counts in another way, cannot see the entries of this
-- process. A reload causes that if it resizes the deny-list or changes the plugin's version.
-- @tparam table dict the counts
-- @tparam table living from list
-- @tparam number count ngx.worker.count()
-- @tparam string shared the result of cells.shared in this process
-- @treturn table reasons, empty if fit. Stream subsystems add no reason: see l4.covered
function _M.unfit(dict, living, count, shared)
    local pids, second = strangers(dict, living)
    local reasons = pids and {} or missing(living, count)
    for _, pid in ipairs(pids or {}) do
        reasons[#reasons + 1] = "worker process " .. pid .. " has not registered: it has not "
                                .. "loaded the plugin, or is from before a reload that is not over"
    end
    for _, worker in ipairs(living) do
        if not worker.fit and not worker.stream then
            reasons[#reasons + 1] = "worker " .. worker.id .. ": " .. worker.unfit
        end
        if worker.shared ~= shared and not worker.stream then
            reasons[#reasons + 1] = "worker " .. worker.id .. " (process " .. worker.pid
                .. ") has another deny-list or counts in another way: a reload is not over"
        end
    end
    if second then
        reasons[#reasons + 1] = "a second nginx serves on the same ports (USR2): "
                                .. "it has a deny-list of its own"
    end
    return reasons
end


--- Removes the keys of dead processes, and returns how many there are. Only one worker removes the
-- keys of a given number: a second removal could hit a worker that took the slot in between.
function _M.purge(dict)
    local _, dead = _M.list(dict)
    for _, worker in ipairs(dead) do
        if dict:safe_add("purge|" .. worker.number, true) then
            dict:delete("purge|" .. worker.number - KEPT)
            totals.purge(dict, worker.number)
            words.forget(dict, worker.number)
            for _, key in ipairs(ALL) do
                dict:delete(key .. worker.number)
            end
            dict:delete("w|" .. worker.slot)
        end
    end
    return #dead
end


return _M
