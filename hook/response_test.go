package main

import (
	"bufio"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

func TestResponses(t *testing.T) {
	for name, test := range map[string]struct {
		text   string
		status int
		body   string
	}{
		"by length":        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}"},
		"no reason":        {"HTTP/1.1 503\r\ncontent-length:2\r\n\r\n{}", 503, "{}"},
		"bare line ends":   {"HTTP/1.0 200 OK\nContent-Length: 2\n\n{}", 200, "{}"},
		"until the end":    {"HTTP/1.1 200 OK\r\n\r\n{}", 200, "{}"},
		"chunks":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n", 200, "{}"},
		"trailers":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n", 200, "{}"},
		"chunks win":       {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, ""},
		"early hints":      {"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, ""},
		"no content":       {"HTTP/1.1 204 No\r\n\r\n", 204, ""},
		"same length":      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 200, "{}"},
		"more than a body": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}garbage", 200, "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			// OneByteReader: no line and no chunk arrives in one piece.
			from := bufio.NewReader(iotest.OneByteReader(strings.NewReader(test.text)))
			status, body, err := readResponse(from)
			if err != nil || status != test.status || string(body) != test.body {
				t.Errorf("got %d %q %v", status, body, err)
			}
		})
	}
}

func TestBrokenResponses(t *testing.T) {
	long := strings.Repeat("x", largestHead)
	for name, test := range map[string]struct{ text, want string }{
		"nothing":         {"", "cut off"},
		"half a head":     {"HTTP/1.1 200 OK\r\nContent-", "cut off"},
		"half a body":     {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "cut off"},
		"half a chunk":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}", "cut off"},
		"no last chunk":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", "cut off"},
		"no end of chunk": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", "longer than it said"},
		"chunk size":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "no chunk size"},
		"huge chunk":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3fffffffffffffff\r\n", "larger than"},
		"huge":            {"HTTP/1.1 200 OK\r\nContent-Length: 4000000000\r\n\r\n", "larger than"},
		"endless":         {"HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", largestBody+1), "larger than"},
		"two lengths":     {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "content-length"},
		"signed length":   {"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}", "content-length"},
		"gzip":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "not understood"},
		"folded":          {"HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\n\r\n", "no HTTP header"},
		"another tongue":  {"SSH-2.0-OpenSSH\r\n", "no HTTP answer"},
		"HTTP/2":          {"HTTP/2 200\r\n\r\n", "no HTTP answer"},
		"long line":       {"HTTP/1.1 200 " + long + "\r\n\r\n", "too large"},
		"many lines":      {"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", largestHead/6) + "\r\n", "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readResponse(bufio.NewReader(strings.NewReader(test.text)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if isCut := test.want == "cut off"; isCut != errors.Is(err, errCut) {
				t.Errorf("cut: got %v", err)
			}
		})
	}
}

func FuzzResponse(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, body, _ := readResponse(bufio.NewReader(strings.NewReader(text)))
		if len(body) > largestBody {
			t.Error(len(body))
		}
	})
}
