--- The tasks of the workers: coroutines that sleep, poll, or wait for Node, and timers.
--
-- Unlike LuaJIT's, the pcall of Lua 5.1 cannot be left by a yield: a pcall of a task that may sleep
-- is a coroutine.
local js, pcall = js, pcall
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield

-- seconds between two resumes of a request that polls shared memory in which nothing has changed
local POLL, POLL_MOST = 0.004, 0.1
-- timers that repeat are due at multiples of this, so that those of all workers run together
local GRID = 0.02

-- now: seconds, set by each call of Node
-- current: the task that runs, { worker, request, co, plain }
-- exit: thrown by ngx.exit in a phase of a request
local _M = { now = 0, exit = {} }
local sleeping, armed = {}, math.huge


-- Tells Node when to call `tick`.
local function sleep_till(task, due)
    task.due = due
    sleeping[task] = true
    if due < armed then
        armed = due
        js.arm((due - _M.now) * 1000)
    end
end


function _M.log(worker, ...)
    local parts = { ... }
    for i = 1, select("#", ...) do
        parts[i] = tostring(parts[i])
    end
    js.log(worker.gateway.id, table.concat(parts))
end


-- Coroutines that wait for a function to run, because a new one costs more.
local pool, DONE = {}, {}


local function serve(func, ...)
    return serve(yield(DONE, func(...)))
end


local function take()
    return table.remove(pool) or create(serve)
end


local function settle(task, ok, what, seconds)
    if what == "sleep" then
        task.seen = task.request and seconds >= POLL and task.worker.gateway.version
        task.till = _M.now + seconds + POLL_MOST
        sleep_till(task, _M.now + seconds)
    elseif what ~= "wait" then
        if ok then
            pool[#pool + 1] = task.co
        else
            _M.log(task.worker, "a task failed: ", what)
        end
        if task.over then
            task.over(ok)
        end
    end
end


--- Resumes a task.
function _M.step(task, ...)
    if task.worker.dead then
        return
    end
    local before = _M.current
    _M.current = task
    settle(task, resume(task.co, ...))
    _M.current = before
end


--- Starts a task. @tparam table task { worker, request, over }
function _M.start(task, func, ...)
    task.co = take()
    _M.step(task, func, ...)
end


local function pass_on(co, ok, what, ...)
    if not ok then
        return false, what
    elseif what ~= DONE then
        return pass_on(co, resume(co, yield(what, ...)))
    end
    pool[#pool + 1] = co
    return true, ...
end


--- The pcall of a worker's code.
function _M.pcall(func, ...)
    if _M.current.plain then
        return pcall(func, ...)
    end
    local co = take()
    return pass_on(co, resume(co, func, ...))
end


--- Runs a phase of a request, which never sleeps. @treturn number|nil the status it exited with
function _M.in_phase(worker, phase, request, func, ...)
    local before, phase_before = _M.current, worker.phase
    _M.current, worker.phase = { worker = worker, request = request, plain = true }, phase
    local ok, err = pcall(func, ...)
    _M.current, worker.phase = before, phase_before
    if ok then
        return nil
    elseif err == _M.exit then
        return _M.exit.status
    end
    _M.log(worker, "a phase failed: ", err)
    return 500
end


local function on_grid(due)
    return math.ceil(due / GRID) * GRID
end


--- The timers of one worker. A timer of `every` goes on while its function still runs.
function _M.timers(worker)
    local function fire(task, premature)
        if task.every and not premature then
            sleep_till(task, on_grid(_M.now + task.every))
        end
        _M.start({ worker = worker }, task.func, premature, unpack(task.args, 1, task.n))
    end

    local function set(delay, every, func, ...)
        local task = { worker = worker, every = every, func = func, fire = fire,
                       args = { ... }, n = select("#", ...) }
        sleep_till(task, every and on_grid(_M.now + delay) or _M.now + delay)
        return true
    end

    return {
        at = function(delay, func, ...) return set(delay, nil, func, ...) end,
        every = function(delay, func, ...) return set(delay, delay, func, ...) end,
    }
end


local callbacks, last_callback = {}, 0


--- Keeps a function until Node calls it.
function _M.callback(func)
    last_callback = last_callback + 1
    callbacks[last_callback] = func
    return last_callback
end


--- Node calls it.
function _M.call_back(id, ...)
    local func = callbacks[id]
    callbacks[id] = nil
    func(...)
end


--- The tasks of a worker that sleep, as a list.
function _M.asleep(worker)
    local list = {}
    for task in pairs(sleeping) do
        if task.worker == worker then
            list[#list + 1] = task
        end
    end
    return list
end


--- A sleeping task is never resumed.
function _M.forget(task) sleeping[task] = nil end


--- Node calls `tick` at once.
function _M.hurry()
    armed = _M.now
    js.arm(0)
end


--- Runs what is due, and arms Node's timer for what comes next.
function _M.tick()
    armed = math.huge
    local due = {}
    for task in pairs(sleeping) do
        if not task.worker.frozen and task.due <= _M.now then
            if task.seen == task.worker.gateway.version and _M.now < task.till then
                task.due = _M.now + POLL
            else
                due[#due + 1] = task
            end
        end
    end
    for _, task in ipairs(due) do
        if sleeping[task] then
            sleeping[task] = nil
            if task.fire then
                task.fire(task, false)
            else
                _M.step(task)
            end
        end
    end
    local first = math.huge
    for task in pairs(sleeping) do
        if not task.worker.frozen and task.due < first then
            first = task.due
        end
    end
    if first < armed then
        armed = first
        js.arm((first - _M.now) * 1000)
    end
end


return _M
