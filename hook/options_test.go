package main

import (
	"strings"
	"testing"
	"time"
)

func none(string) string { return "" }

func TestOptionsByDefault(t *testing.T) {
	got, help, problems := parseOptions(nil, none)
	if help != "" || len(problems) > 0 {
		t.Fatalf("help %q, problems %v", help, problems)
	}
	want := options{
		target:         target{"apisix-drain.apisix", "8080", "apisix-drain.apisix:8080", ""},
		budget:         24 * time.Second,
		fallback:       5 * time.Second,
		connectTimeout: 2 * time.Second,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFlagBeforeEnvironment(t *testing.T) {
	env := map[string]string{
		"APISIX_DRAIN_BUDGET": "9s", "APISIX_DRAIN_FALLBACK": "3s", "APISIX_DRAIN_QUIET": "200ms",
		"POD_NAME": "web-1", "POD_NAMESPACE": "shop", "POD_UID": "u-1",
	}
	got, _, problems := parseOptions([]string{"--budget", "7s", "-fallback=1s", "--fail"}, func(name string) string { return env[name] })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got.budget != 7*time.Second || got.fallback != time.Second || got.quiet != 200*time.Millisecond || !got.fail {
		t.Errorf("got %+v", got)
	}
	if got.pod != (pod{"web-1", "shop", "u-1"}) {
		t.Errorf("got %+v", got.pod)
	}
}

func TestNameAloneIsTheProgramsOwn(t *testing.T) {
	got, _, problems := parseOptions(nil, func(name string) string {
		return map[string]string{"POD_NAME": "anything"}[name]
	})
	if len(problems) > 0 || got.pod != (pod{}) {
		t.Errorf("got %+v, %v", got.pod, problems)
	}
}

func TestWrongValues(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"no unit":        {[]string{"--budget", "24"}, nil, "--budget: \"24\" must be a duration"},
		"negative":       {[]string{"--fallback=-1s"}, nil, "--fallback: \"-1s\" must be a duration of at least 0s"},
		"no budget":      {[]string{"--budget=0s"}, nil, "--budget: \"0s\" must be a duration of at least 1ms"},
		"by environment": {nil, map[string]string{"APISIX_DRAIN_QUIET": "yes"}, "APISIX_DRAIN_QUIET: \"yes\" must be a duration"},
		"unknown":        {[]string{"--bugdet", "1s"}, nil, "flag provided but not defined: -bugdet"},
		"no value":       {[]string{"--budget"}, nil, "flag needs an argument"},
		"a word":         {[]string{"now"}, nil, "\"now\" is no option"},
		"only one name":  {[]string{"--pod", "web-1"}, nil, "--pod and --namespace go together"},
		"https":          {[]string{"--url", "https://agent"}, nil, "--url: \"https://agent\" must begin with http://"},
		"no URL":         {nil, map[string]string{"APISIX_DRAIN_URL": "agent:8080"}, "APISIX_DRAIN_URL: \"agent:8080\" is no URL"},
		"a query":        {[]string{"--url", "http://agent?x=1"}, nil, "must end after host, port and path"},
		"no port":        {[]string{"--url", "http://agent:0"}, nil, "no port between 1 and 65535"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, problems := parseOptions(test.args, func(name string) string { return test.env[name] })
			if len(problems) != 1 || !strings.Contains(problems[0], test.want) {
				t.Errorf("got %q, want %q", problems, test.want)
			}
			if got.budget <= 0 || got.fallback < 0 {
				t.Errorf("a wrong hook must still know how long to sleep: %+v", got)
			}
		})
	}
}
