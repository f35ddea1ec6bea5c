// apisix-drain-hook is the preStop hook of a pod behind Apache APISIX. It asks an agent to take the pod out, waits for
// the proof, and falls back to a bounded sleep if no agent answers. The program is one static file, for images without
// a shell. See docs/hooks.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// version is set by the linker.
var version = "dev"

const (
	exitDone = 0
	// exitFellBack is used with --fail only: it makes the kubelet write the event FailedPreStopHook.
	exitFellBack = 1
	exitUsage    = 2
	// exitSignal is added to the signal's number, as shells do.
	exitSignal = 128
)

func main() { os.Exit(run(os.Args[1:], os.Getenv)) }

func run(args []string, env func(string) string) int {
	started := time.Now()
	if len(args) > 0 && args[0] == "install" {
		return install(args[1:])
	}
	options, help, problems := parseOptions(args, env)
	switch {
	case help == "help":
		fmt.Print(usage)
		return exitDone
	case help == "version":
		fmt.Println(version)
		return exitDone
	}
	say := sayer(options.logFile)
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGTERM, syscall.SIGINT)
	ctx, cancel := context.WithDeadline(context.Background(), started.Add(options.budget))
	defer cancel()
	done := make(chan int, 1)
	go func() {
		if len(problems) > 0 {
			done <- misused(ctx, problems, options, started, say)
		} else {
			done <- hook(ctx, options, started, say)
		}
	}()
	select {
	case code := <-done:
		return code
	case number := <-received:
		say("ended by %s before there was an answer", number)
		return exitSignal + int(number.(syscall.Signal))
	}
}

// hook calls the agent, falls back if necessary, and then waits for the quiet window if one is configured.
func hook(ctx context.Context, options options, started time.Time, say func(string, ...any)) int {
	answer, failure := ask(ctx, options, started)
	code := exitDone
	switch {
	case failure != nil:
		fallBack(ctx, failure.Error(), options, started, say)
		code = fellBack(options)
	case !answer.proved:
		fallBack(ctx, answer.String(), options, started, say)
		code = fellBack(options)
	default:
		say("%s (%s in all)", answer, round(time.Since(started)))
	}
	if options.quiet > 0 && (failure != nil || answer.ends()) {
		say("%s", waitQuiet(ctx, options.quiet, started))
	}
	return code
}

// misused handles a hook with wrong options: it sleeps like the fallback, and its exit code makes the kubelet report
// the failure.
func misused(ctx context.Context, problems []string, options options, started time.Time, say func(string, ...any)) int {
	for _, problem := range problems {
		say("%s", problem)
	}
	fallBack(ctx, "wrong usage, see --help", options, started, say)
	return exitUsage
}

// fallBack sleeps until the hook has taken as long as the sleep that it replaces. The time spent on calls counts too,
// because the gateways could update in that time. fallBack never sleeps past the budget.
func fallBack(ctx context.Context, why string, options options, started time.Time, say func(string, ...any)) {
	left := max(0, min(options.fallback, options.budget)-time.Since(started))
	if left == 0 {
		say("%s; no sleep, %s have passed already", why, round(time.Since(started)))
		return
	}
	say("%s; sleeping %s instead", why, round(left))
	sleep(ctx, left)
}

func fellBack(options options) int {
	if options.fail {
		return exitFellBack
	}
	return exitDone
}

// sayer returns a function that writes a line to standard error, and to the file at path unless path is empty. The
// kubelet keeps the standard error of a failed hook. The file /proc/1/fd/2 leads to the log of the container.
func sayer(path string) func(string, ...any) {
	return func(format string, values ...any) {
		line := fmt.Sprintf("apisix-drain-hook: "+format+"\n", values...)
		os.Stderr.WriteString(line)
		if path == "" {
			return
		}
		// O_NONBLOCK: a pipe without a reader must not delay the hook.
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
		if err != nil {
			fmt.Fprintf(os.Stderr, "apisix-drain-hook: --log: %v\n", err)
			return
		}
		defer file.Close()
		_ = file.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = file.WriteString(line)
	}
}

// sleep returns early when the context ends.
func sleep(ctx context.Context, how time.Duration) {
	timer := time.NewTimer(how)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// round makes a duration readable.
func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
