// app is the sandbox's app (sandbox/app) as a compiled program, without a drain of its own. If ten pods start and end on
// two cores, ten starts of Node.js could take most of the time that a hook waits.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// A shell reports this code for a program that SIGTERM has ended.
const exitTerm = 128 + int(syscall.SIGTERM)

// An idle connection stays open until SIGTERM, unless the gateway's keep-alive pool closes it earlier, as with a real app.
const idle = 75 * time.Second

// answer has the fields that the load reads (sandbox/load/send.ts), under the same names.
type answer struct {
	Pod      string `json:"pod"`
	Received int64  `json:"received"`
	Method   string `json:"method"`
}

// POD_NAME, POD_IP and PORT are those of the pod. The app listens STARTUP_MS after its start. With AT_TERM=exit it drops accepted
// requests at SIGTERM, as programs without a handler do, and with a duration it first ignores the signal that long. Otherwise it closes
// its listener and answers these requests first.
func main() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	code := 0
	ignored, err := time.ParseDuration(os.Getenv("AT_TERM"))
	if err == nil || os.Getenv("AT_TERM") == "exit" {
		code = exitTerm
	}
	delay, _ := strconv.Atoi(env("STARTUP_MS", "0"))
	select {
	case <-term:
		os.Exit(code)
	case <-time.After(time.Duration(delay) * time.Millisecond):
	}
	server := &http.Server{
		Addr:        net.JoinHostPort(env("POD_IP", "127.0.0.1"), env("PORT", "8080")),
		Handler:     handler(env("POD_NAME", "app")),
		IdleTimeout: idle,
	}
	go func() {
		if err := server.ListenAndServe(); err != http.ErrServerClosed {
			log.Fatal(err)
		}
	}()
	<-term
	if code != 0 {
		time.Sleep(ignored)
		os.Exit(code)
	}
	// Shutdown also waits for connections on which no request has come yet, up to five seconds.
	if err := server.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// handler reads the request, waits for `?ms=` milliseconds, and answers with the pod's name. While the file /tmp/hung exists, no answer comes.
func handler(pod string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			// The client has disconnected, so an answer could not reach it.
			panic(http.ErrAbortHandler)
		}
		ms, _ := strconv.Atoi(r.URL.Query().Get("ms"))
		time.Sleep(time.Duration(ms) * time.Millisecond)
		for _, err := os.Stat("/tmp/hung"); err == nil; _, err = os.Stat("/tmp/hung") {
			time.Sleep(100 * time.Millisecond)
		}
		w.Header().Set("content-type", "application/json")
		w.Header().Set("x-pod", pod)
		_ = json.NewEncoder(w).Encode(answer{pod, received, r.Method})
	})
}
