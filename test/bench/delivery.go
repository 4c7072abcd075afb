package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/store"
)

// delivery measures the built bot with a homeserver and a model that take no time themselves: the
// fake homeserver of this process, and a model that answers at once.
func delivery(ctx context.Context, bot string) ([]figure, error) {
	dir, err := os.MkdirTemp("", "reverie-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	d := &post{server: matrixtest.New(), asked: make(chan time.Time, 4096)}
	if err := d.server.Listen(); err != nil {
		return nil, err
	}
	defer d.server.Stop()
	model := httptest.NewServer(http.HandlerFunc(d.model))
	defer model.Close()
	d.you, d.bot = d.server.Account("you", "bench-password"), d.server.Account("reverie", "bench-password")

	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("data: ./data\nlog: {level: error}\nmatrix: {homeserver: %q, user: %q, password: bench-password, owners: [%q]}\nllm:\n  models: [{name: instant, base_url: %q, model: instant}]\n",
		d.server.URL, d.bot, d.you, model.URL+"/v1")
	if err := store.WriteFile(config, []byte(text)); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, bot, "run", "--config", config)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return d.measure(ctx)
}

// post is the measured traffic.
type post struct {
	server   *matrixtest.Server
	you, bot string
	rooms    []string
	asked    chan time.Time // times of model requests
	seen     int            // sends that were counted
}

// model answers every request at once.
func (d *post) model(w http.ResponseWriter, r *http.Request) {
	select {
	case d.asked <- time.Now():
	default:
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"yes"}}]}`+"\n\n"+
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// replies waits for new messages of the bot and returns their rooms.
func (d *post) replies(ctx context.Context) ([]string, error) {
	var rooms []string
	err := d.server.Await(ctx, func() bool {
		sends := d.server.Sends()
		for _, s := range sends[d.seen:] {
			if s.User == d.bot {
				rooms = append(rooms, s.Room)
			}
		}
		d.seen = len(sends)
		return len(rooms) > 0
	})
	return rooms, err
}

func (d *post) measure(ctx context.Context) ([]figure, error) {
	const rooms, alone, total = 50, 200, 2000
	for i := range rooms {
		d.rooms = append(d.rooms, d.server.Room(d.you, matrixtest.NewRoom{Name: fmt.Sprint("room ", i), Direct: true, Invite: []string{d.bot}}))
	}
	for _, room := range d.rooms {
		if err := d.server.Await(ctx, func() bool { return d.server.Membership(room, d.bot) == "join" }); err != nil {
			return nil, fmt.Errorf("the bot did not join: %w", err)
		}
	}
	// One message at a time: the time that the bot adds before the model request.
	var added []float64
	for i := range alone {
		for len(d.asked) > 0 { // drop other model requests
			<-d.asked
		}
		began := time.Now()
		d.server.Say(d.you, d.rooms[i%rooms], "hello")
		select {
		case at := <-d.asked:
			added = append(added, float64(at.Sub(began).Microseconds())/1e3)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if _, err := d.replies(ctx); err != nil {
			return nil, err
		}
	}
	slices.Sort(added)

	// All rooms at once: each sends its next message right after the answer.
	began := time.Now()
	for _, room := range d.rooms {
		d.server.Say(d.you, room, "hello")
	}
	for answered, said := 0, rooms; answered < total; {
		in, err := d.replies(ctx)
		if err != nil {
			return nil, fmt.Errorf("after %d answers: %w", answered, err)
		}
		answered += len(in)
		for _, room := range in {
			if said < total {
				d.server.Say(d.you, room, "hello")
				said++
			}
		}
	}
	rate := total / time.Since(began).Seconds()
	return []figure{
		{"from the message to the model's request: p50", added[alone/2], "ms", 5},
		{"from the message to the model's request: p99", added[alone*99/100], "ms", 25},
		{"answered messages, 50 rooms, instant model (aim > 200)", rate, "/s", 0},
	}, nil
}
