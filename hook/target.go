package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// target is the address at which the agents listen.
type target struct {
	// host is a name or an address, without brackets.
	host, port string
	// authority is the Host header.
	authority string
	// prefix is the path before /v1/prestop, without a slash at its end.
	prefix string
}

// parseTarget takes http://host[:port][/prefix].
func parseTarget(text string) (target, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return target{}, fmt.Errorf("%q is no URL such as http://apisix-drain.apisix:8080", text)
	}
	if parsed.Scheme != "http" {
		return target{}, fmt.Errorf("%q must begin with http://, the agent speaks nothing else", text)
	}
	if parsed.User != nil || parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" {
		return target{}, errors.New("the URL must end after host, port and path")
	}
	port := parsed.Port()
	if port == "" {
		port = "80"
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 || parsed.Hostname() == "" {
		return target{}, fmt.Errorf("%q has no host or no port between 1 and 65535", text)
	}
	return target{parsed.Hostname(), port, parsed.Host, strings.TrimRight(parsed.EscapedPath(), "/")}, nil
}

// at returns the address at which the agent with this IP listens.
func (t target) at(ip string) string { return net.JoinHostPort(ip, t.port) }

// The agent must answer this long before the budget ends, so that its answer, with the reason, still arrives.
const answerMargin = 500 * time.Millisecond

// request returns the text of the whole call. The call has no body, and its connection is used once.
func request(options options, left time.Duration) string {
	query := url.Values{}
	if options.pod.name != "" {
		query.Set("namespace", options.pod.namespace)
		query.Set("pod", options.pod.name)
	}
	if options.pod.uid != "" {
		query.Set("uid", options.pod.uid)
	}
	if options.container != "" {
		query.Set("container", options.container)
	}
	if options.fallback > 0 {
		query.Set("sleep", milliseconds(options.fallback))
	}
	if options.atLeast > 0 {
		query.Set("atLeast", milliseconds(options.atLeast))
	}
	if wait := left - answerMargin; wait >= time.Millisecond {
		query.Set("timeout", milliseconds(wait))
	}
	path := options.target.prefix + "/v1/prestop"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	lines := []string{
		"POST " + path + " HTTP/1.1",
		"Host: " + options.target.authority,
		"User-Agent: apisix-drain-hook/" + version,
		"Accept: application/json",
		"Content-Length: 0",
		"Connection: close",
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }
