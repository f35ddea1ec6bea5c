--- The answers of the Barrier API, built from the two dictionaries: any worker can answer for all.
local runtime  = require("apisix.drain.runtime")
local cells    = require("apisix.drain.cells")
local workers  = require("apisix.drain.workers")
local totals   = require("apisix.drain.totals")
local json     = require("apisix.drain.json")
local fetch    = require("apisix.drain.fetch")
local words    = require("apisix.drain.word_store")
local l4       = require("apisix.drain.l4")
local successors = require("apisix.drain.successors")
local ngx      = ngx
local ngx_now  = ngx.now
local format   = string.format
local max      = math.max
local entry_mod = require("apisix.drain.entry")
local clock_now = require("apisix.drain.host").now

local _M = {}


--- The fields of every answer about entries. The list of living workers is read once per answer.
function _M.base(barrier)
    ngx.update_time()
    barrier.at = clock_now()
    local living = workers.list(barrier.counts)
    barrier.living, barrier.numbers = l4.speakers(living), workers.numbers(living)
    barrier.all, barrier.l4 = living, l4.covered(living)
    barrier.unplaced = totals.unplaced(barrier.counts, barrier.numbers)
    local dict = barrier.entries.dict
    barrier.unfit = workers.unfit(barrier.counts, living, ngx.worker.count(), cells.shared(dict))
    barrier.words = nil
    return {
        instance = cells.instance(dict), fit = #barrier.unfit == 0,
        now = ngx_now(),
    }
end


local function age_of(began)
    return began == 0 and 0 or max(0, clock_now() - began)
end


local function kinds_of(sum)
    return format(',"upgraded":%d,"sse":%d,"streams":%d,"oldest":%.1f', sum.upgraded, sum.sse,
                  max(0, sum.long - sum.upgraded - sum.sse), age_of(sum.began))
end


local function age_text(name, text, done, age)
    return text and format(',"%s":%s,"%sFor":%.4f', name, json.encode(text), done, age) or ""
end


-- Builds an entry's text in one step, because a renewal of thousands of entries spends most of its
-- time here. The strings that are put in as they are need no escaping: request.lua checks them.
local told = { text = function(entry)
    local ages = entry.sealed_for and format(',"sealedFor":%.4f', entry.sealed_for) or ""
    if ages ~= "" and entry.inflight.requests == 0 then
        ages = ages .. format(',"idleFor":%.4f', entry.idle_for)
    end
    return format('{"uid":"%s","ip":"%s",%s"state":"%s","ttl":%.3f,"inflight":'
                  .. '{"requests":%d,"long":%d%s},"bypasses":%d,"late":%d%s%s%s%s}',
                  entry.uid, entry.ip, entry.port and '"port":' .. entry.port .. ',' or "",
                  entry.state, entry.ttl, entry.inflight.requests, entry.inflight.long,
                  entry.inflight.long > 0 and kinds_of(entry.inflight) or "",
                  entry.bypasses, entry.late, ages,
                  entry.word and ',"word":' .. json.encode(entry.word) or "",
                  entry.successors and ',"successors":' .. json.encode(entry.successors) or "",
                  age_text("answer", entry.answer, "answered", entry.answered_for)
                  .. age_text("stop", entry.stop, "stopped", entry.stopped_for))
end }


--- The report about an entry, with the requests in flight at this moment.
-- @tparam boolean mute whether to leave out the workers' word, which may be most of the report
function _M.entry(barrier, entry, mute)
    local bypasses, late = entry_mod.passes(barrier.entries.dict, entry.id)
    local body = setmetatable({
        uid = entry.uid, ip = entry.ip, port = entry.port,
        state = entry.sealed and "sealed" or "draining",
        ttl = barrier.entries:left(entry),
        inflight = totals.read(barrier.counts, barrier.numbers, barrier.unplaced,
                               entry.ip, entry.port),
        bypasses = bypasses, late = late,
    }, told)
    if entry.sealed then
        -- read after the count: each request that the count leaves out has stored its end by then
        body.sealed_for, body.idle_for = entry_mod.ages(barrier.entries.dict, entry.id, barrier.at)
    end
    if mute then
        return body
    end
    barrier.words = barrier.words or words.read(barrier.counts, barrier.living, barrier.l4)
    body.word = barrier.words:of(entry.id, barrier.entries:since(entry.id))
    return body
end


--- Do all workers still report the words that the agent has judged? Their tag shows it. There is no
-- pause between this read and the seal that follows.
-- @tparam table entry as put
-- @treturn boolean
function _M.still_says(barrier, entry)
    local id = barrier.entries.id_of(entry)
    local all = words.read(barrier.counts, barrier.living)
    local word = all:of(id, barrier.entries:since(id))
    return word.tag == entry.seal_if and all:stand()
end


local function told_workers(counts, living)
    local list, l4_of = json.list(), {}
    for _, worker in ipairs(living) do
        if worker.stream then
            l4_of[worker.pid] = worker.unfit or "covered"
        end
    end
    for _, worker in ipairs(living) do
        list[#list + 1] = not worker.stream and {
            id = worker.id, pid = worker.pid, fit = worker.fit, unfit = json.list({ worker.unfit }),
            seen = worker.seen, revision = worker.revision, applied = worker.applied,
            revisions = workers.revisions(counts, worker.number), exiting = worker.exiting,
            l4 = l4_of[worker.pid] or worker.l4 and "no dictionary in the block lua" or nil,
        } or nil
    end
    return list
end


local function size_of(dict)
    -- free_space only counts pages that are wholly free
    return { capacity = dict:capacity(), free = dict:free_space() }
end


-- Entries to which a request was sent in spite of their seal. Usually `sum` is 0, and then no entry
-- is read.
local function late_ones(entries, sum)
    local list = {}
    for _, entry in ipairs(sum > 0 and entries:all() or {}) do
        local _, late = entry_mod.passes(entries.dict, entry.id)
        if late > 0 then
            list[#list + 1] = entry
        end
    end
    return list
end


--- The whole state.
-- @tparam string|nil which "late": only the entries with late requests. If there are none, the cost
--   does not grow with the number of entries
-- @tparam boolean mute whether to leave out the workers' words
function _M.state(barrier, which, mute)
    local body = _M.base(barrier)
    body.plugin, body.apisix = runtime.VERSION, runtime.apisix_version()
    body.unfit = json.list(barrier.unfit)
    body.workers = told_workers(barrier.counts, barrier.all)

    local entries = barrier.entries
    body.held, body.entries = entries:held(), json.list()
    local list = which == "late" and late_ones(entries, body.held.late) or entries:all()
    for i, entry in ipairs(list) do
        local told_entry = _M.entry(barrier, entry, mute)
        if which ~= "late" then
            -- for an agent that has just started, and does not know the pods that ended before
            told_entry.successors = entry.successors and successors.names(entry.successors)
            local dict, id = entries.dict, entry.id
            told_entry.answer, told_entry.answered_for = entry_mod.text_of(dict, "a|", id)
            told_entry.stop, told_entry.stopped_for = entry_mod.text_of(dict, "k|", id)
        end
        body.entries[i] = told_entry
    end

    local counts = barrier.counts
    body.counts = {
        moved = counts:get("moved") or 0, bypasses = counts:get("bypasses") or 0,
        refused = counts:get("refused") or 0, errors = counts:get("errors") or 0,
        succeeded = counts:get("succeeded") or 0,
    }
    body.dictionary = size_of(barrier.entries.dict)
    body.counters = size_of(counts)
    local _, trouble = fetch.ready(barrier.entries.dict)
    body.fetch = trouble
    return body
end


return _M
