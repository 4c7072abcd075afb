package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// State is what is measured anew for each request.
type State struct {
	Inbox, Outbox, Undecryptable int     // messages that wait
	InboxOldest, OutboxOldest    int64   // seconds that the oldest of them waits
	Lost, Unsent                 int     // messages given up: unreadable ones, own ones
	SyncAge                      float64 // seconds since the last sync; since the start, if there was none
	SyncFailures                 int     // since the last sync
	Memories                     int
	DatabaseBytes                int64
}

// figures are the gauges made of a State.
var figures = []struct {
	name, help string
	value      func(State) float64
}{
	{"reverie_inbox_messages", "Messages that wait for an answer.", func(s State) float64 { return float64(s.Inbox) }},
	{"reverie_inbox_oldest_seconds", "How long the oldest of them waits.", func(s State) float64 { return float64(s.InboxOldest) }},
	{"reverie_outbox_messages", "Messages that wait to be sent.", func(s State) float64 { return float64(s.Outbox) }},
	{"reverie_outbox_oldest_seconds", "How long the oldest of them waits.", func(s State) float64 { return float64(s.OutboxOldest) }},
	{"reverie_undecryptable_messages", "Messages that wait for their key.", func(s State) float64 { return float64(s.Undecryptable) }},
	{"reverie_lost_messages", "Unreadable messages that were given up.", func(s State) float64 { return float64(s.Lost) }},
	{"reverie_unsent_messages", "Own messages that were given up.", func(s State) float64 { return float64(s.Unsent) }},
	{"reverie_sync_age_seconds", "Since the last sync with the homeserver.", func(s State) float64 { return s.SyncAge }},
	{"reverie_sync_failures", "Failed syncs since the last one that succeeded.", func(s State) float64 { return float64(s.SyncFailures) }},
	{"reverie_memory_entries", "Memories that can be found.", func(s State) float64 { return float64(s.Memories) }},
	{"reverie_database_bytes", "Size of bot.db.", func(s State) float64 { return float64(s.DatabaseBytes) }},
}

// Config says where the figures are served.
type Config struct {
	Listen   string   // address and port
	Hosts    []string // names under which it is asked, besides its address and those of this machine
	Counters *Counters
	Read     func(context.Context) (State, error)
	Log      *slog.Logger
}

// Server serves /metrics.
type Server struct {
	cfg      Config
	listener net.Listener
	handler  http.Handler
}

// Listen opens the port. Run serves it and closes it.
func Listen(ctx context.Context, cfg Config) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("metrics.listen: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(cfg.Counters.registry, state{cfg}, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "go_goroutines", Help: "Goroutines that exist."},
			func() float64 { return float64(runtime.NumGoroutine()) }))
	serve := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: 2, Timeout: readTime, DisableCompression: true,
	})
	s := &Server{cfg: cfg, listener: listener}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", serve)
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.serves(r.Host) { // a page in a browser that resolves its own name to this machine
			http.Error(w, "this name is not served; add it to metrics.hosts", http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
	return s, nil
}

// readTime is the longest time to read a State.
const readTime = 5 * time.Second

// serves reports whether a request may name host, with any port.
func (s *Server) serves(host string) bool {
	own, _, _ := net.SplitHostPort(s.cfg.Listen)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return slices.Contains(append([]string{own, "localhost", "127.0.0.1", "::1"}, s.cfg.Hosts...), host)
}

// Addr returns the address that is listened on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	server := http.Server{Handler: s.handler, ReadHeaderTimeout: readTime, WriteTimeout: 2 * readTime, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 8 << 10, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)}
	s.cfg.Log.Info("metrics", "address", "http://"+s.Addr()+"/metrics")
	var g errgroup.Group
	g.Go(func() error { <-ctx.Done(); return server.Close() })
	err := server.Serve(s.listener)
	if ctx.Err() == nil {
		s.cfg.Log.Error("metrics are not served any more", "err", err)
		return nil // people still get their answers
	}
	return g.Wait()
}

// state collects the figures of one State.
type state struct{ cfg Config }

// Describe implements prometheus.Collector. It says nothing, so that the figures are checked as they come.
func (state) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c state) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	now, err := c.cfg.Read(ctx)
	if err != nil {
		c.cfg.Log.Warn("some metrics cannot be read", "err", err)
		return
	}
	for _, f := range figures {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(f.name, f.help, nil, nil), prometheus.GaugeValue, f.value(now))
	}
}
