-- The only place that reads the clock, in ms: `now` is rounded down, for asking whether a time has come; `later` is
-- rounded up, for making times from durations, so that nothing is early. `micros` is the time in microseconds.
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
local later = math.ceil(micros / 1000)
