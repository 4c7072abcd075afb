package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
)

// delivery measures the built bot with a homeserver and a model that take no time themselves: the
// fake homeserver of this process, and a model that answers at once. Beside it an account on the same
// homeserver sends an answer to each message as soon as mautrix's own sync hands it over.
func (b *bench) delivery(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return inFolder(func(dir string) error {
		d := &post{server: matrixtest.New(), asked: make(chan time.Time, 4096)}
		if err := d.server.Listen(); err != nil {
			return err
		}
		defer d.server.Stop()
		model := httptest.NewServer(http.HandlerFunc(d.model))
		defer model.Close()
		d.you = d.server.Account("you", "bench-password")
		user := d.server.Account("reverie", "bench-password")
		bot, err := b.botIn(ctx, dir, fmt.Sprintf("log: {level: error}\nmatrix: {homeserver: %q, user: %q, password: bench-password, owners: [%q]}\nllm:\n  models: [{name: instant, base_url: %q, model: instant}]\n",
			d.server.URL, user, d.you, model.URL+"/v1"))
		if err != nil {
			return err
		}
		cmd := bot("run")
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}()
		stop, err := d.echo(ctx, dir)
		if err != nil {
			return err
		}
		defer stop()
		ours, err := d.rooms(ctx, user)
		if err != nil {
			return err
		}
		theirs, err := d.rooms(ctx, d.server.Account("echo", "bench-password"))
		if err != nil {
			return err
		}
		return d.measure(ctx, b, ours, theirs)
	})
}

// post is the measured traffic.
type post struct {
	server *matrixtest.Server
	you    string
	asked  chan time.Time // times of model requests
	seen   int            // sends that were counted
}

const (
	manyRooms = 50
	plainBot  = "an echo bot on mautrix's sync"
)

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

// echo starts an account that answers each message with its text.
func (d *post) echo(ctx context.Context, dir string) (stop func(), err error) {
	p, err := peer.Login(ctx, peer.Config{Homeserver: d.server.URL, User: d.server.Account("echo", "bench-password"), Password: "bench-password", DB: filepath.Join(dir, "echo.db")})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-p.Events():
				switch e.Kind {
				case peer.Invited:
					_ = p.Join(ctx, e.Room)
				case peer.Message:
					_, _ = p.Say(ctx, e.Room, e.Body)
				}
			}
		}
	})
	return func() { cancel(); running.Wait(); _ = p.Close() }, nil
}

// rooms makes direct chats with user and waits until they are joined.
func (d *post) rooms(ctx context.Context, user string) (all []string, err error) {
	for i := range manyRooms {
		all = append(all, d.server.Room(d.you, matrixtest.NewRoom{Name: fmt.Sprint("room ", i), Direct: true, Invite: []string{user}}))
	}
	for _, room := range all {
		if err := d.server.Await(ctx, func() bool { return d.server.Membership(room, user) == "join" }); err != nil {
			return nil, fmt.Errorf("%s did not join: %w", user, err)
		}
	}
	return all, nil
}

// replies waits for new messages in rooms that are not from this side, and returns their rooms.
func (d *post) replies(ctx context.Context, rooms []string) (in []string, err error) {
	err = d.server.Await(ctx, func() bool {
		sends := d.server.Sends()
		for _, s := range sends[d.seen:] {
			if s.User != d.you && slices.Contains(rooms, s.Room) {
				in = append(in, s.Room)
			}
		}
		d.seen = len(sends)
		return len(in) > 0
	})
	return in, err
}

// ask says something and waits for the answer.
func (d *post) ask(ctx context.Context, rooms []string, i int) error {
	d.server.Say(d.you, rooms[i%manyRooms], "hello")
	_, err := d.replies(ctx, rooms)
	return err
}

func (d *post) measure(ctx context.Context, b *bench, ours, theirs []string) error {
	// One message at a time.
	var added []float64 // until the model's request
	one := func(i int) error {
		for len(d.asked) > 0 { // drop other model requests
			<-d.asked
		}
		began := time.Now()
		if err := d.ask(ctx, ours, i); err != nil {
			return err
		}
		select {
		case at := <-d.asked:
			added = append(added, milliseconds(at.Sub(began)))
			return nil
		default:
			return errors.New("an answer came without a request")
		}
	}
	answered, echoed, err := beside(200, one, func(i int) error { return d.ask(ctx, theirs, i) })
	if err != nil {
		return err
	}
	slices.Sort(added)
	b.put(percentiles("from the message to the model's request", 5, 25, added, "", nil)...)
	b.put(percentiles("from the message to the answer, instant model", 0, 0, answered, plainBot, echoed)...)

	// All rooms at once: each sends its next message right after the answer.
	rate, err := d.rate(ctx, ours)
	if err != nil {
		return err
	}
	plain, err := d.rate(ctx, theirs)
	b.put(figure{What: fmt.Sprintf("answers a second in %d rooms, instant model (aim: more than 200)", manyRooms), Value: rate, Unit: "/s", Baseline: plain, Plain: plainBot})
	return err
}

// rate returns how many messages a second are answered in rooms.
func (d *post) rate(ctx context.Context, rooms []string) (float64, error) {
	const total = 2000
	began := time.Now()
	for _, room := range rooms {
		d.server.Say(d.you, room, "hello")
	}
	for answered, said := 0, len(rooms); answered < total; {
		in, err := d.replies(ctx, rooms)
		if err != nil {
			return 0, fmt.Errorf("after %d answers: %w", answered, err)
		}
		answered += len(in)
		for _, room := range in {
			if said < total {
				d.server.Say(d.you, room, "hello")
				said++
			}
		}
	}
	return total / time.Since(began).Seconds(), nil
}
