package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	snmp = "Ip: Forwarding DefaultTTL\nIp: 1 64\n" +
		"Tcp: RtoAlgorithm ActiveOpens PassiveOpens AttemptFails\nTcp: 1 26 41 6\nUdp: InDatagrams\nUdp: 7\n"
	table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:A2B4 01 00000000:00000005 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:A2B6 03 00000000:00000000 01:00000018 00000000     0        0 0 1 0
   3: 0100007F:1F90 0100007F:A2B8 06 00000000:00000000 03:000016C1 00000000     0        0 0 3 0
`
)

func folder(t *testing.T, files map[string]string) string {
	at := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

func TestSockets(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  sockets
		err   string
	}{
		"both families":   {map[string]string{"snmp": snmp, "tcp": table, "tcp6": table}, sockets{41, 8}, ""},
		"no IPv6":         {map[string]string{"snmp": snmp, "tcp": table}, sockets{41, 4}, ""},
		"nobody":          {map[string]string{"snmp": snmp, "tcp": table[:strings.Index(table, "\n")+1]}, sockets{41, 0}, ""},
		"no counter":      {map[string]string{"snmp": "Tcp: A\nTcp: 1\n", "tcp": table}, sockets{}, "does not count PassiveOpens"},
		"no files at all": {nil, sockets{}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readSockets(folder(t, test.files))
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestSocketsOfThisKernel(t *testing.T) {
	if _, err := readSockets(socketsFolder); err != nil {
		t.Error(err)
	}
}

func TestQuietWatch(t *testing.T) {
	type look struct {
		at   int
		seen sockets
		want bool
	}
	for name, looks := range map[string][]look{
		"nobody comes":                 {{50, sockets{7, 0}, false}, {99, sockets{7, 0}, false}, {100, sockets{7, 0}, true}},
		"somebody came and went":       {{50, sockets{8, 0}, false}, {149, sockets{8, 0}, false}, {150, sockets{8, 0}, true}},
		"somebody is not accepted yet": {{50, sockets{7, 1}, false}, {140, sockets{7, 1}, false}, {239, sockets{7, 0}, false}, {240, sockets{7, 0}, true}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(0, 0)
			watch := quietWatch{window: 100 * time.Millisecond, since: start, seen: sockets{7, 0}}
			for _, look := range looks {
				if got := watch.look(start.Add(time.Duration(look.at)*time.Millisecond), look.seen); got != look.want {
					t.Errorf("at %d ms: got %v", look.at, got)
				}
			}
		})
	}
}
