--- One entry of the deny-list, with all its fields (so this file is long), in a shared dictionary:
--
--   gen            number of changes that workers must see; a renewal is not such a change
--   c|i            one of the last changes, "number id"; i: the number modulo the ring's length
--   e|uid|ip|port  when the entry expires (host.now); port may be empty
--   s|uid|ip|port  true while the entry is sealed. A renewal does not touch it, and needs no lock
--   b|uid|ip|port  number of bypasses, plus LATE times the number of late requests, which reached
--                  the address although the entry was sealed: by design there are none
--   t|uid|ip|port  when the entry was sealed (host.now). Not part of s|: if there is no room for
--                  t|, the entry is sealed all the same, and only the time is unknown
--   f|uid|ip|port  when an ordinary request to the address last finished (host.now)
--   n|uid|ip|port  the successors of its pod, as text (successors.lua); absent if there are none
--   a|uid|ip|port  when the hook of its pod was answered (host.now), and the text of the answer
--   k|uid|ip|port  when the hook of a container that stops called (host.now), and which containers
--                  stop, as text; absent if the pod ends
--   w|uid|ip|port  which ways to the pod to look for, as text (ways.lua)
--   v|uid|ip|port  the revision as of which these were named; kept for REMEMBERED seconds
--   r|uid          the revision as of which the entries of this pod were last removed; as v|
--   late           the sum of late requests over all entries, ever
--   x|uid|ip|port  true while a worker removes the entry because it has expired
--
-- A revision is that of the API server up to which an agent knows the pods. Agents may lag: what
-- one knows as of an earlier revision does not undo what another has put as of a later one.
--
-- Only v| and r| use the dictionary's own expiry: it follows the wall clock, which may step. Only
-- operations that never evict are used: a full dictionary must not cost another pod its entry.
local copy      = require("apisix.drain.copy")
local ways      = require("apisix.drain.ways")
local clock_now = require("apisix.drain.host").now
local ngx       = ngx
local floor     = math.floor
local max       = math.max
local str_match = string.match

local SEALED   = "sealed"
-- more than the bypasses that one entry can get; a number is exact up to 2^53
local LATE     = 2 ^ 27
-- seconds until x| ends by itself, if the worker that set it was killed
local CLEARING = 10
-- seconds for which an agent may lag: longer than an agent takes to notice that its watch is silent
local REMEMBERED = 120
local FIELDS   = { "e|", "s|", "b|", "t|", "f|", "n|", "a|", "k|", "w|" }
-- how often to wait for another worker to clear the entry, which takes microseconds
local TRIES    = 1000
local PAUSE    = 0.001

local _M = {
    DRAINING = "draining", SEALED = SEALED,
    OUTDATED = "an agent that knows more has removed it",
}


--- Prepares a dictionary that only entries use.
function _M.prepare(dict)
    dict:safe_add("gen", 0)
    dict:safe_add("late", 0)
end


function _M.id_of(entry)
    return entry.uid .. "|" .. entry.ip .. "|" .. (entry.port or "")
end


--- Removes an entry and its counts. If the entry has not expired, the caller must also call
-- copy.changed.
function _M.forget(dict, id)
    for _, field in ipairs(FIELDS) do
        dict:delete(field .. id)
    end
end


--- A text of the entry that other agents read.
-- @tparam string field "a|" or "k|"
-- @treturn string|nil the text @treturn number|nil its age in seconds
function _M.text_of(dict, field, id)
    local at, text = str_match(dict:get(field .. id) or "", "^(%S+) (.*)$")
    return text, at and max(0, clock_now() - at)
end


-- Stores which containers stop, unless the entry is of the pod's end, or of a later stop.
-- @treturn boolean whether other agents must read it
local function note_stop(dict, id, entry, is_new)
    if not entry.stop then
        dict:delete("k|" .. id)
        return false
    end
    local text, age = _M.text_of(dict, "k|", id)
    if not is_new and (not age or text == entry.stop or age <= entry.stopped_for) then
        return false
    end
    return dict:safe_set("k|" .. id, clock_now() - entry.stopped_for .. " " .. entry.stop)
end


--- Removes an entry that has expired, but never one that another process puts at the same time.
-- This function sets x| and then reads the entry. A put writes the entry and then reads x|.
function _M.clear(dict, id)
    if not dict:safe_add("x|" .. id, true, CLEARING) then
        return
    end
    local till = dict:get("e|" .. id)
    if till and till <= clock_now() then
        _M.forget(dict, id)
    end
    dict:delete("x|" .. id)
end


local function create(dict, id, expires)
    local ok, err = dict:safe_set("b|" .. id, 0)
    if ok then
        ok, err = dict:safe_set("e|" .. id, expires)
    end
    if not ok then
        _M.forget(dict, id)
    end
    return ok, err
end


local function set(dict, key, text)
    if text == "" then
        dict:delete(key)
        return true
    end
    return dict:safe_set(key, text)
end


-- May the caller name successors, or are those that are stored from a later revision?
local function may_name(dict, id, as_of)
    if not as_of then
        return true
    elseif as_of < (dict:get("v|" .. id) or 0) then
        return false
    end
    -- if there is no room for it, an agent that lags may name old ones for a while
    dict:safe_set("v|" .. id, as_of, REMEMBERED)
    return true
end


-- The dictionary is full. A new entry is removed again. An older entry stays, and some of its
-- fields may have changed.
local function refuse(dict, id, is_new, err)
    if is_new then
        _M.forget(dict, id)
    end
    return false, err, not is_new
end


-- @treturn boolean|nil written; nil: the entry had expired, or another worker has just removed it,
--   so the caller tries again
-- @treturn string|nil "no memory"
-- @treturn boolean|nil whether workers must see the change
local function write(dict, id, entry)
    local now = clock_now()
    local till = dict:get("e|" .. id)
    if till and till <= now then
        -- this removes its seal and its counts too
        _M.clear(dict, id)
        return nil
    end

    if not till then
        local ok, err = create(dict, id, now + entry.ttl)
        if not ok then
            return false, err
        end
    elseif not dict:replace("e|" .. id, now + entry.ttl) then
        return nil
    end

    local changed = note_stop(dict, id, entry, not till) or not till
    local ok, err
    for field, text in pairs({
        ["n|"] = entry.successors and may_name(dict, id, entry.as_of) and entry.successors or nil,
        ["w|"] = entry.ways and ways.both(dict:get("w|" .. id) or "", entry.ways),
    }) do
        if text ~= (dict:get(field .. id) or "") then
            ok, err = set(dict, field .. id, text)
            if not ok then
                return refuse(dict, id, not till, err)
            end
            changed = true
        end
    end
    -- only for display: the first answer stays, and one for which there is no room is missing
    if entry.answer
       and dict:safe_add("a|" .. id, now - entry.answered_for .. " " .. entry.answer) then
        changed = true
    end
    if entry.state == SEALED then
        -- before the seal, so that a sealed entry has its time; a later put does not change it
        dict:safe_add("t|" .. id, now)
        ok, err = dict:safe_add("s|" .. id, true)
        if not ok and err ~= "exists" then
            return refuse(dict, id, not till, err)
        end
        changed = changed or ok
    end
    return true, nil, changed
end


local function is_outdated(dict, entry)
    return entry.as_of and entry.as_of < (dict:get("r|" .. entry.uid) or 0)
end


--- The entries of this pod are removed as of a revision. Called before the entries are read.
function _M.outdate(dict, uid, as_of)
    if as_of > (dict:get("r|" .. uid) or 0) then
        dict:safe_set("r|" .. uid, as_of, REMEMBERED)
    end
end


--- Sets, renews or seals one entry.
-- @tparam table entry { uid, ip (canonical), port?, state, ttl, successors?, ways?, as_of? }:
--   if successors is absent, its stored value stays. Ways are added to those that are stored
-- @treturn boolean stored
-- @treturn string|nil why not: OUTDATED, "no memory" (see refuse), or the entry is just being
--   removed
function _M.put(dict, entry)
    if is_outdated(dict, entry) then
        return false, _M.OUTDATED
    end
    local id = _M.id_of(entry)
    local changed, ok, err = false, nil, nil
    for try = 1, TRIES do
        local news
        ok, err, news = write(dict, id, entry)
        changed = changed or news
        if ok == false or ok and not dict:get("x|" .. id) and dict:get("e|" .. id) then
            break
        end
        ok, err = false, "it has just expired and is being cleared away: put it again"
        if try > 2 then
            ngx.sleep(PAUSE)
        end
    end
    if changed then
        copy.changed(dict, id)
    end
    -- a removal writes r| and then looks for entries, so one that missed this change has written r|
    -- by now
    if ok and is_outdated(dict, entry) then
        _M.forget(dict, id)
        copy.changed(dict, id)
        return false, _M.OUTDATED
    end
    return ok, err
end


--- Counts a bypass.
function _M.bypassed(dict, id)
    dict:incr("b|" .. id, 1)
end


--- Counts a request that was sent in spite of the seal.
function _M.late(dict, id)
    dict:incr("b|" .. id, LATE)
    dict:incr("late", 1)
end


--- Requests that were sent to the node in spite of the entry.
-- @treturn number bypasses: the entry was draining
-- @treturn number late requests: the entry was sealed
function _M.passes(dict, id)
    local both = dict:get("b|" .. id) or 0
    return both % LATE, floor(both / LATE)
end


--- Stores that an ordinary request to the address of the entry ends now. The worker's copy may name
-- an entry that is gone: nothing would ever remove its time.
function _M.finished(dict, id)
    if dict:get("e|" .. id) then
        dict:safe_set("f|" .. id, clock_now())
    end
end


--- Seconds since an entry was sealed, and since it has been both sealed and idle. nil: the time of
-- the seal is not known.
-- @tparam number now by host.now
function _M.ages(dict, id, now)
    local sealed = dict:get("t|" .. id)
    if not sealed then
        return nil
    end
    local idle = max(sealed, dict:get("f|" .. id) or 0)
    return max(0, now - sealed), max(0, now - idle)
end


--- Seconds until an entry expires; 0 or less if it has expired.
-- @tparam number|nil expires used if the dictionary does not have the entry; default: long ago
function _M.left(dict, id, expires)
    return (dict:get("e|" .. id) or expires or 0) - clock_now()
end


function _M.is_sealed(dict, id)
    return dict:get("s|" .. id) == true
end


--- The sum of late requests over all entries, ever.
function _M.all_late(dict)
    return dict:get("late") or 0
end


return _M
