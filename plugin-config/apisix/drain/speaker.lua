--- When this worker speaks (word.lua): when it is woken, and by a timer in any case. And how a
-- request of the Barrier API hears what all of them say.
local word_mod = require("apisix.drain.word")
local words    = require("apisix.drain.words")
local wake     = require("apisix.drain.wake")
local ngx      = ngx
local clock_now = require("apisix.drain.clock").now

local LOOK  = 0.02      -- when it looks at the latest, woken or not, seconds
local HEAR  = 0.004     -- how long a put waits for all
-- the shortest that is a wait: ngx.sleep counts milliseconds
local PAUSE = 0.001

local _M = {}
-- in the dictionary of counts: an agent wants words. Until then no worker makes any
local WANTED = "words-wanted"
local word, deps


local function look(premature)
    if premature or not deps.switch.active or not (word or deps.counts:get(WANTED)) then
        return
    end
    if not word then
        word = word_mod.new(deps)
        wake.listen(deps.counts, deps.number, look)
    end
    word:look()
end


--- Once in the life of a worker.
-- @tparam table with { core, entries, counts, number, switch = { active } }
function _M.start(with)
    deps = with
    ngx.timer.every(LOOK, look)
end


--- An agent wants words from now on.
-- @tparam table counts
function _M.want(counts)
    counts:safe_add(WANTED, true)
end


--- Does one?
function _M.wanted(counts)
    return counts:get(WANTED) == true
end


--- Takes this worker's word back if discovery has other nodes by now where this address is.
function _M.check(ip)
    if word then
        word:check(ip)
    end
end


--- The addresses of a name that a place has, by the last answer. Asks nothing.
-- @treturn table|nil
function _M.records(name)
    return word and word:records(name)
end


--- For a worker that exits.
function _M.stop()
    wake.stop()
end


--- Wakes every worker, and waits a little for their words about a deny-list.
-- @tparam table barrier { entries, counts, living: see workers.list }
-- @tparam number gen the generation that they must know
-- @treturn boolean true when something may have been said, so what was read before is old
function _M.hear(barrier, gen)
    local counts, living = barrier.counts, barrier.living
    if words.complete(counts, living, gen) or not wake.wake(counts, living) then
        return false
    end
    if deps then
        -- not here: what a name resolves to may take seconds, and a put waits for none
        ngx.timer.at(0, look)
    end
    local till = clock_now() + HEAR
    while not words.complete(counts, living, gen) and clock_now() < till do
        ngx.sleep(PAUSE)
    end
    return true
end


return _M
