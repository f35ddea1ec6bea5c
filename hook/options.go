package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// options are the settings of a call. A wrong value is replaced by the default, so that the fallback has a length.
type options struct {
	target         target
	budget         time.Duration
	fallback       time.Duration
	connectTimeout time.Duration
	// atLeast is the sleep that the hook replaces, if it covered other traffic than that of APISIX too.
	atLeast time.Duration
	// quiet is 0 without a quiet window.
	quiet time.Duration
	pod   pod
	// container is the caller: if only that one stops, only its ports are drained.
	container string
	logFile   string
	fail      bool
}

// pod is the caller, as far as the environment tells. Without these values the agent knows only the caller's address,
// which several pods may share.
type pod struct{ name, namespace, uid string }

// setting is one value: a flag, else an environment variable, else the default.
type setting struct{ flag, env, byDefault string }

var settings = struct {
	url, budget, fallback, atLeast, connectTimeout, quiet, pod, namespace, uid, container, log setting
}{
	url:            setting{"url", "APISIX_DRAIN_URL", "http://apisix-drain.apisix:8080"},
	budget:         setting{"budget", "APISIX_DRAIN_BUDGET", "24s"},
	fallback:       setting{"fallback", "APISIX_DRAIN_FALLBACK", "5s"},
	atLeast:        setting{"at-least", "APISIX_DRAIN_AT_LEAST", "0s"},
	connectTimeout: setting{"connect-timeout", "APISIX_DRAIN_CONNECT_TIMEOUT", "2s"},
	quiet:          setting{"quiet", "APISIX_DRAIN_QUIET", "0s"},
	pod:            setting{"pod", "POD_NAME", ""},
	namespace:      setting{"namespace", "POD_NAMESPACE", ""},
	uid:            setting{"uid", "POD_UID", ""},
	container:      setting{"container", "APISIX_DRAIN_CONTAINER", ""},
	log:            setting{"log", "APISIX_DRAIN_LOG", ""},
}

// parseOptions never fails: it returns one line for each problem, and keeps the valid options. help is "help",
// "version" or empty.
func parseOptions(args []string, env func(string) string) (result options, help string, problems []string) {
	flags := flag.NewFlagSet("apisix-drain-hook", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	values := map[string]string{}
	value := func(s setting) { flags.Func(s.flag, "", func(text string) error { values[s.flag] = text; return nil }) }
	for _, s := range []setting{settings.url, settings.budget, settings.fallback, settings.atLeast, settings.connectTimeout,
		settings.quiet, settings.pod, settings.namespace, settings.uid, settings.container, settings.log} {
		value(s)
	}
	fail := flags.Bool("fail", false, "")
	showVersion := flags.Bool("version", false, "")

	complain := func(format string, about ...any) { problems = append(problems, fmt.Sprintf(format, about...)) }
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return result, "help", nil
	} else if err != nil {
		complain("%v", err)
	} else if flags.NArg() > 0 {
		complain("%q is no option; the only command is install", flags.Arg(0))
	}
	if *showVersion {
		return result, "version", nil
	}

	get := func(s setting) (text, origin string) {
		if text, given := values[s.flag]; given {
			return text, "--" + s.flag
		}
		if text := env(s.env); text != "" {
			return text, s.env
		}
		return s.byDefault, ""
	}
	duration := func(s setting, least time.Duration) time.Duration {
		text, origin := get(s)
		parsed, err := time.ParseDuration(text)
		if err == nil && parsed >= least {
			return parsed
		}
		complain("%s: %q must be a duration of at least %s, such as 5s or 200ms", origin, text, least)
		parsed, _ = time.ParseDuration(s.byDefault)
		return parsed
	}
	result.budget = duration(settings.budget, time.Millisecond)
	result.fallback = duration(settings.fallback, 0)
	result.atLeast = duration(settings.atLeast, 0)
	result.connectTimeout = duration(settings.connectTimeout, time.Millisecond)
	result.quiet = duration(settings.quiet, 0)

	text, origin := get(settings.url)
	parsed, err := parseTarget(text)
	if err != nil {
		complain("%s: %v", origin, err)
	}
	result.target = parsed

	name, byFlag := get(settings.pod)
	namespace, byOtherFlag := get(settings.namespace)
	result.pod.uid, _ = get(settings.uid)
	result.container, _ = get(settings.container)
	if name != "" && namespace != "" {
		result.pod.name, result.pod.namespace = name, namespace
	} else if byFlag == "--pod" || byOtherFlag == "--namespace" {
		// A single variable of the pair may exist for the app's own use. A single flag of the pair is a mistake.
		complain("--pod and --namespace go together; give both or none")
	}
	result.logFile, _ = get(settings.log)
	result.fail = *fail
	return result, "", problems
}
