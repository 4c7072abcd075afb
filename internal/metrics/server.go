package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reverie/internal/hosts"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Gauge is a figure that is measured for each request.
type Gauge struct {
	Name, Help string
	Value      float64
}

// Config says where the figures are served.
type Config struct {
	Listen   string   // address and port
	Hosts    []string // names under which it is asked, besides its address and those of this machine
	Counters *Counters
	Read     func(context.Context) ([]Gauge, error) // measures the state of the program
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
	registry.MustRegister(cfg.Counters.registry, gauges{cfg}, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
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

// readTime is the longest time to measure the gauges.
const readTime = 5 * time.Second

// serves reports whether a request may name host, with any port.
func (s *Server) serves(host string) bool {
	known := append([]string{s.cfg.Listen, "localhost", "127.0.0.1", "::1"}, s.cfg.Hosts...)
	return slices.ContainsFunc(known, func(k string) bool { return hosts.Name(k) == hosts.Name(host) })
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	server := http.Server{Handler: s.handler, ReadHeaderTimeout: readTime, WriteTimeout: 2 * readTime, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 8 << 10, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)}
	s.cfg.Log.Info("metrics", "address", "http://"+s.listener.Addr().String()+"/metrics")
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(s.listener); ctx.Err() == nil { // people still get their answers
		s.cfg.Log.Error("metrics are not served any more", "err", err)
	}
	return nil
}

type gauges struct{ cfg Config }

// Describe implements prometheus.Collector. It says nothing, so that the gauges are checked as they come.
func (gauges) Describe(chan<- *prometheus.Desc) {}

func (g gauges) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	all, err := g.cfg.Read(ctx)
	if err != nil {
		g.cfg.Log.Warn("some metrics cannot be read", "err", err)
	}
	for _, m := range all {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.Name, m.Help, nil, nil), prometheus.GaugeValue, m.Value)
	}
}
