package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	firstPause = 100 * time.Millisecond
	lastPause  = time.Second
	// An agent that was silent for this long held the hook. If that agent then disconnects, the hook asks another one.
	heldAtLeast = time.Second
	// An address always has this time to accept a connection.
	leastConnect = 300 * time.Millisecond
)

// A held hook is silent, so the kernel probes the agent's host. A dead host is detected after six seconds.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3}

// ask tries one address after another until an agent answers. If none answers, ask retries for as long as the fallback
// would sleep. An agent may hold the hook for the whole budget. If it breaks off, one more round follows in any case.
func ask(ctx context.Context, given options, started time.Time) (answer, error) {
	tries, wasHeld := 0, false
	// A host that drops all packets must not delay the end of the fallback, unless an agent has held the hook until now.
	timely := func() options {
		its := given
		if !wasHeld {
			its.connectTimeout = min(its.connectTimeout, max(its.fallback-time.Since(started), leastConnect))
		}
		return its
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		addresses, failure := resolve(ctx, timely())
		isHeld := false
		for _, address := range addresses {
			tries++
			said, held, err := exchange(ctx, timely(), address, started)
			if err == nil {
				return said, nil
			}
			failure = fmt.Errorf("%s %w", address, err)
			if errors.As(err, &refusal{}) {
				return answer{}, failure
			}
			// The connection has the same deadline, and may notice it first.
			if ctx.Err() != nil || time.Since(started) >= given.budget {
				return answer{}, fmt.Errorf("no answer from %s within the budget of %s", address, given.budget)
			}
			isHeld = isHeld || held >= heldAtLeast
		}
		wasHeld = isHeld
		giveUp := !wasHeld && time.Since(started)+pause >= given.fallback
		if giveUp || ctx.Err() != nil {
			return answer{}, fmt.Errorf("no answer (%d tries): %w", tries, failure)
		}
		// Many pods end at once, and their hooks must not all retry at the same moment.
		sleep(ctx, pause/2+rand.N(pause/2))
	}
}

// resolve lists the addresses of the agents in random order, so that replicas share the hooks of a rollout.
func resolve(ctx context.Context, options options) ([]string, error) {
	limited, cancel := context.WithTimeout(ctx, options.connectTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(limited, options.target.host)
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	addresses := make([]string, len(found))
	for i, ip := range found {
		addresses[i] = options.target.at(ip)
	}
	return addresses, nil
}

// exchange makes one call. held is the time from the request to the answer, or to the failure.
func exchange(ctx context.Context, options options, address string, started time.Time) (said answer, held time.Duration, err error) {
	dialer := net.Dialer{Timeout: options.connectTimeout, KeepAliveConfig: keepAlive}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return answer{}, 0, plain(err)
	}
	defer connection.Close()
	end := started.Add(options.budget)
	if err := connection.SetDeadline(end); err != nil {
		return answer{}, 0, plain(err)
	}
	sent := time.Now()
	if _, err := connection.Write([]byte(request(options, time.Until(end)))); err != nil {
		return answer{}, 0, plain(err)
	}
	status, body, err := readResponse(bufio.NewReader(connection))
	held = time.Since(sent)
	if err != nil {
		return answer{}, held, plain(err)
	}
	said, err = understand(status, body)
	return said, held, err
}

// plain describes a failure without the addresses, because the log line already has them.
func plain(err error) error {
	var number syscall.Errno
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return errors.New("did not answer in time")
	case errors.Is(err, syscall.ETIMEDOUT):
		return errors.New("does not answer any more")
	case errors.As(err, &number):
		return number
	}
	return err
}
