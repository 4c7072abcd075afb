package trace

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestSilentEndpoint: steps never wait for an endpoint that does not answer, at most 2,048 are kept, the log has one
// line a minute, and the end takes two seconds.
func TestSilentEndpoint(t *testing.T) {
	usual := http.DefaultTransport
	http.DefaultTransport = transport(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
	defer func() { http.DefaultTransport = usual }()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		began := time.Now()
		ctx, end := Begin(t.Context(), "http://collector.test/", slog.New(slog.NewTextHandler(&log, nil)))
		ctx, turn := Start(ctx, Turn, "reverie")
		for range 3000 {
			_, s := Start(ctx, Prompt, "")
			s.End("")
		}
		if time.Since(began) != 0 || len(turn.to.ended) != 2048 || turn.to.lost != 952 {
			t.Errorf("took %v; %d kept, %d lost", time.Since(began), len(turn.to.ended), turn.to.lost)
		}
		time.Sleep(time.Second / 2) // no step at the moment of a request
		for range 90 {              // one step a second
			_, s := Start(ctx, Prompt, "")
			s.End("")
			time.Sleep(time.Second)
		}
		synctest.Wait()
		turn.to.mu.Lock()
		lines := strings.Count(log.String(), "traces are lost")
		turn.to.mu.Unlock()
		if lines != 2 || !strings.Contains(log.String(), "spans=3005 ") {
			t.Errorf("%d lines: %s", lines, &log)
		}
		turn.End("")
		ending := time.Now()
		if end(); time.Since(ending) > 2*time.Second {
			t.Errorf("the end took %v", time.Since(ending))
		}
		time.Sleep(time.Minute) // until the last request has given up
	})
}

// TestNothingIsTraced: without an endpoint, and outside of turns.
func TestNothingIsTraced(t *testing.T) {
	ctx, end := Begin(context.Background(), "", nil)
	if in, s := Start(ctx, Turn, "reverie"); in != ctx || s != nil {
		t.Error("a turn without an endpoint")
	}
	end()
	ctx, end = Begin(context.Background(), "http://collector.test", nil)
	in, s := Start(ctx, Chat, "m")
	if in != ctx || s != nil {
		t.Error("a request outside of turns")
	}
	s.End("failed", Tokens(1, 0, 1)...)
	end() // with nothing to send
}
