--- Decides when this worker updates its word (word.lua): when another worker wakes it, and by a
-- timer. A request of the Barrier API waits in `hear` for the words of all workers.
local word_mod = require("apisix.drain.word")
local words    = require("apisix.drain.word_store")
local wake     = require("apisix.drain.wake")
local ngx      = ngx
local clock_now = require("apisix.drain.host").now

local LOOK  = 0.02      -- the longest time between two checks, seconds
local HEAR  = 0.004     -- how long a put waits for all workers, seconds
-- the shortest real wait: ngx.sleep counts milliseconds
local PAUSE = 0.001

local _M = {}
local word, deps


local function look(premature)
    -- words are about entries: until the first one comes, this worker makes none
    if premature or not deps.holds() or not (word or deps.entries:current().n > 0) then
        return
    end
    if not word then
        word = word_mod.new(deps)
        wake.listen(deps.counts, deps.number, look)
    end
    word:look()
end


--- Starts the timer. Call it once in the life of a worker.
-- @tparam table with { core, entries, counts, number, holds = function() -> is the barrier on? }
function _M.start(with)
    deps = with
    ngx.timer.every(LOOK, look)
end


--- Takes this worker's word back if discovery has changed the nodes of a place with this address.
function _M.check(ip)
    if word then
        word:check(ip)
    end
end


--- The addresses of a name that a place has, by the last answer. Sends no query.
-- @treturn table|nil
function _M.records(name)
    return word and word:records(name)
end


--- Ends the listening in a worker that exits.
_M.stop = wake.stop


--- Wakes every worker, and waits a little for their words about a deny-list.
-- @tparam table barrier { entries, counts, living: see workers.list }
-- @tparam number gen the generation that the workers must know
-- @treturn boolean true if words may have changed meanwhile, so earlier reads are stale
function _M.hear(barrier, gen)
    local counts, living = barrier.counts, barrier.living
    if words.complete(counts, living, gen) or not wake.wake(counts, living) then
        return false
    end
    if deps then
        -- in a timer: a name may take seconds to resolve, and a put does not wait for that
        ngx.timer.at(0, look)
    end
    local till = clock_now() + HEAR
    while not words.complete(counts, living, gen) and clock_now() < till do
        ngx.sleep(PAUSE)
    end
    return true
end


return _M
