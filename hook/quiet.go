package main

import (
	"context"
	"fmt"
	"time"
)

const socketsFolder = "/proc/self/net"

// The limits of the pause between two checks. A check costs tens of microseconds, and more with thousands of
// connections.
const (
	shortestLook = 5 * time.Millisecond
	longestLook  = 50 * time.Millisecond
)

// quietWatch records when a connection last arrived.
type quietWatch struct {
	window time.Duration
	since  time.Time
	seen   sockets
}

// look reports whether nothing arrived during the window.
func (w *quietWatch) look(now time.Time, seen sockets) bool {
	if seen.accepted != w.seen.accepted || seen.pending > 0 {
		w.since = now
	}
	w.seen = seen
	return now.Sub(w.since) >= w.window
}

// waitQuiet waits until no client has connected for the window, or the context ends. It returns a line for the log. The
// quiet window is for requests that bypass APISIX: no gateway confirms that those have stopped.
func waitQuiet(ctx context.Context, window time.Duration, started time.Time) string {
	first, err := readSockets(socketsFolder)
	if err != nil {
		return fmt.Sprintf("no quiet window: %v", err)
	}
	begun := time.Now()
	watch := quietWatch{window: window, since: begun, seen: first}
	pause := min(max(window/10, shortestLook), longestLook)
	for seen := first; !watch.look(time.Now(), seen); {
		sleep(ctx, pause)
		if ctx.Err() != nil {
			return fmt.Sprintf("not quiet within the budget (%s): %d connections since, %d waiting",
				round(time.Since(started)), watch.seen.accepted-first.accepted, watch.seen.pending)
		}
		if seen, err = readSockets(socketsFolder); err != nil {
			return fmt.Sprintf("no quiet window: %v", err)
		}
	}
	return fmt.Sprintf("quiet for %s after %s: %d connections since",
		window, round(time.Since(begun)), watch.seen.accepted-first.accepted)
}
