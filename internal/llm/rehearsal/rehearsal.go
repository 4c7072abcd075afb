// Package rehearsal is a stand-in for a language model: for a first try without one, and for tests.
// It is a server for the OpenAI chat protocol with a handful of fixed rules (rules.go) and no
// state. All its answers come from the request, so an answer proves what the prompt contained.
//
// The newest message of a person decides. The header before it and the program's notes after it are
// ignored (words.go). It understands:
//
//	remember that …                        calls append_memory
//	what do you know about …?              searches the prompt it was sent
//	who is …?  what is …?  where …?
//	remind me to … [tomorrow at 9:00]      calls task
//	what are my tasks?                     calls task
//	complete task_…                        calls task
//	read FILE                              calls read_file
//	add skill NAME: …                      calls add_skill
//	send file FILE                         calls send_file
//	write file FILE: …                     calls write_file
//	in FILE replace … with …               calls edit_file
//	switch to NAME mode                    calls set_mode
//	ask me: A or B?                        calls ask_person
//
// It answers pictures with their type and size, files with their first lines, and recordings with
// their size.
//
// The first answer of a conversation says that no language model is connected,
// and how to connect one.
//
// For tests a message may hold one of these hooks:
//
//	rehearse: error N      the HTTP status N
//	rehearse: slow D       waits for the duration D first (3s, 200ms)
//	rehearse: long N       an answer of N words
package rehearsal

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// ModelName is the name of the server's only model.
const ModelName = "rehearsal"

// Config configures the rehearsal model.
type Config struct {
	Pace time.Duration // between two words when streaming; 0 = none
	Log  *slog.Logger  // nil = silent
}

// Handler serves GET /v1/models, POST /v1/audio/transcriptions and POST /v1/chat/completions.
func Handler(cfg Config) http.Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := server{cfg}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("POST /v1/audio/transcriptions", s.transcribe)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "unknown_url", fmt.Sprintf("Unknown request URL: %s %s", r.Method, r.URL.Path))
	})
	return mux
}

// Start serves Handler on a free loopback port until stop is called or ctx ends. baseURL ends in
// /v1. stop closes streams, waits for the server and may be called again.
func Start(ctx context.Context, cfg Config) (baseURL string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("rehearsal: %w", err)
	}
	srv := &http.Server{Handler: Handler(cfg), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	// go: ends with srv.Close; stop waits for it
	go func() {
		defer close(done)
		if err := srv.Serve(l); err != http.ErrServerClosed && cfg.Log != nil {
			cfg.Log.Error("rehearsal model stopped", "err", err)
		}
	}()
	shut := sync.OnceFunc(func() {
		srv.Close()
		<-done
	})
	forget := context.AfterFunc(ctx, shut)
	return "http://" + l.Addr().String() + "/v1", func() { forget(); shut() }, nil
}
