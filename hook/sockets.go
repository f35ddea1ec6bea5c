package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// sockets holds the counts that any process in a network namespace can read without privileges.
type sockets struct {
	// accepted counts connections that clients opened successfully (RFC 4022, tcpPassiveOpens). The counter misses no
	// connection, however short. Polling for open connections would miss short ones.
	accepted uint64
	// pending are handshakes in progress and connections that the program has not accepted yet.
	pending int
}

// States of /proc/net/tcp (include/net/tcp_states.h).
const (
	stateSynReceived = "03"
	stateListen      = "0A"
)

// readSockets reads the counts from the folder net of a process, such as /proc/self/net.
func readSockets(folder string) (sockets, error) {
	text, err := os.ReadFile(filepath.Join(folder, "snmp"))
	if err != nil {
		return sockets{}, err
	}
	accepted, err := passiveOpens(string(text))
	if err != nil {
		return sockets{}, err
	}
	result := sockets{accepted: accepted}
	for _, name := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		// A kernel without IPv6 has no such file.
		if errors.Is(err, fs.ErrNotExist) && name == "tcp6" {
			continue
		}
		if err != nil {
			return sockets{}, err
		}
		waiting, err := pendingIn(string(text))
		if err != nil {
			return sockets{}, fmt.Errorf("%s: %w", name, err)
		}
		result.pending += waiting
	}
	return result, nil
}

// passiveOpens finds the counter by its name: /proc/net/snmp has a line of names above each line of values.
func passiveOpens(text string) (uint64, error) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names {
			if name == "PassiveOpens" && i < len(fields) {
				return strconv.ParseUint(fields[i], 10, 64)
			}
		}
	}
	return 0, errors.New("snmp: the kernel does not count PassiveOpens")
}

// pendingIn returns the pending connections in a table of sockets. Its columns are the number, local and remote
// address, state, and the `tx:rx` queues in hex. The rx queue of a listener is its accept queue.
func pendingIn(text string) (int, error) {
	pending := 0
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[0] == "sl" {
			continue
		}
		switch fields[3] {
		case stateSynReceived:
			pending++
		case stateListen:
			_, queue, _ := strings.Cut(fields[4], ":")
			waiting, err := strconv.ParseUint(queue, 16, 31)
			if err != nil {
				return 0, err
			}
			pending += int(waiting)
		}
	}
	return pending, nil
}
