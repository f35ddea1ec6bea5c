package main

import (
	"strings"
	"testing"
	"time"
)

func TestTargets(t *testing.T) {
	for text, want := range map[string]target{
		"http://apisix-drain.apisix:8080": {"apisix-drain.apisix", "8080", "apisix-drain.apisix:8080", ""},
		"http://10.0.0.1":                 {"10.0.0.1", "80", "10.0.0.1", ""},
		"http://[fd00::1]:8080/":          {"fd00::1", "8080", "[fd00::1]:8080", ""},
		"http://edge:81/a/b/":             {"edge", "81", "edge:81", "/a/b"},
	} {
		got, err := parseTarget(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	if at := (target{port: "8080"}).at("fd00::1"); at != "[fd00::1]:8080" {
		t.Error(at)
	}
}

func TestRequest(t *testing.T) {
	asked := options{
		target:    target{"agent", "8080", "agent:8080", "/a"},
		pod:       pod{"web-1", "shop", "u-1"},
		container: "app",
		fallback:  5 * time.Second,
		atLeast:   1500 * time.Millisecond,
	}
	want := strings.Join([]string{
		"POST /a/v1/prestop?atLeast=1500ms&container=app&namespace=shop&pod=web-1&sleep=5000ms&timeout=23500ms&uid=u-1 HTTP/1.1",
		"Host: agent:8080",
		"User-Agent: apisix-drain-hook/dev",
		"Accept: application/json",
		"Content-Length: 0",
		"Connection: close",
		"", "",
	}, "\r\n")
	if got := request(asked, 24*time.Second); got != want {
		t.Errorf("got %q", got)
	}
	bare := request(options{target: target{"agent", "80", "agent", ""}}, 400*time.Millisecond)
	if !strings.HasPrefix(bare, "POST /v1/prestop HTTP/1.1\r\n") {
		t.Errorf("got %q", bare)
	}
}
