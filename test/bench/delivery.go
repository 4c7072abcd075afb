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
	return b.withBot(ctx, 3*time.Minute, func(ctx context.Context, d *post, dir string) error {
		stop, err := d.echo(ctx, dir)
		if err != nil {
			return err
		}
		defer stop()
		ours, err := d.rooms(ctx, d.bot, 50)
		if err != nil {
			return err
		}
		theirs, err := d.rooms(ctx, d.server.Account("echo", "bench-password"), len(ours))
		if err != nil {
			return err
		}
		return d.measure(ctx, b, ours, theirs)
	})
}

// scale measures one process with 2,000 direct chats that all write at once, again and again.
func (b *bench) scale(ctx context.Context) error {
	return b.withBot(ctx, 9*time.Minute, func(ctx context.Context, d *post, dir string) error {
		const name = "2,000 direct chats, "
		began := time.Now()
		rooms, err := d.rooms(ctx, d.bot, 2000)
		if err != nil {
			return err
		}
		b.put(figure{What: name + "until all are joined", Value: time.Since(began).Seconds(), Unit: "s"})
		rate, waited, err := d.rate(ctx, d.bot, rooms, 3*len(rooms))
		if err != nil {
			return err
		}
		b.put(percentiles(name+"from the message to the answer", 0, 0, waited, "", nil)...)
		info, err := os.Stat(filepath.Join(dir, "data", "bot.db"))
		if err != nil {
			return err
		}
		b.put(figure{What: name + "answers a second (aim: more than 300)", Value: rate, Unit: "/s"},
			figure{What: name + "memory after 6,000 answers", Value: memoryOf(d.pid)["VmRSS"], Unit: "MB", Limit: 300},
			figure{What: name + "bot.db after 6,000 answers", Value: float64(info.Size()) / 1e6, Unit: "MB"})
		return nil
	})
}

// withBot runs the bot on a fake homeserver while do measures it.
func (b *bench) withBot(ctx context.Context, most time.Duration, do func(ctx context.Context, d *post, dir string) error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return inFolder(func(dir string) error {
		d := &post{server: matrixtest.New(), asked: make(chan time.Time, 4096)}
		if err := d.server.Listen(); err != nil {
			return err
		}
		defer d.server.Stop()
		model := httptest.NewServer(http.HandlerFunc(d.model))
		defer model.Close()
		d.you, d.bot = d.server.Account("you", "bench-password"), d.server.Account("reverie", "bench-password")
		bot, err := b.botIn(ctx, dir, fmt.Sprintf("log: {level: error}\nmatrix: {homeserver: %q, user: %q, password: bench-password, owners: [%q]}\nllm:\n  models: [{name: instant, base_url: %q, model: instant}]\n",
			d.server.URL, d.bot, d.you, model.URL+"/v1"))
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
		d.pid = cmd.Process.Pid
		return do(ctx, d, dir)
	})
}

// post is the measured traffic.
type post struct {
	server   *matrixtest.Server
	you, bot string
	pid      int            // of the bot
	asked    chan time.Time // times of model requests
	seen     int            // sends that were counted
}

const plainBot = "an echo bot on mautrix's sync"

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
func (d *post) rooms(ctx context.Context, user string, n int) (all []string, err error) {
	for i := range n {
		all = append(all, d.server.Room(d.you, matrixtest.NewRoom{Name: fmt.Sprint("room ", i), Direct: true, Invite: []string{user}}))
	}
	for _, room := range all {
		if err := d.server.Await(ctx, func() bool { return d.server.Membership(room, user) == "join" }); err != nil {
			return nil, fmt.Errorf("%s did not join: %w", user, err)
		}
	}
	return all, nil
}

// replies waits for new messages from user, and returns their rooms.
func (d *post) replies(ctx context.Context, user string) (in []string, err error) {
	err = d.server.Await(ctx, func() bool {
		sends := d.server.SendsAfter(d.seen)
		for _, s := range sends {
			if s.User == user {
				in = append(in, s.Room)
			}
		}
		d.seen += len(sends)
		return len(in) > 0
	})
	return in, err
}

// ask says something and waits for the answer.
func (d *post) ask(ctx context.Context, user string, rooms []string, i int) error {
	d.server.Say(d.you, rooms[i%len(rooms)], "hello")
	_, err := d.replies(ctx, user)
	return err
}

func (d *post) measure(ctx context.Context, b *bench, ours, theirs []string) error {
	echo := d.server.Account("echo", "bench-password")
	// One message at a time.
	var added []float64 // until the model's request
	one := func(i int) error {
		for len(d.asked) > 0 { // drop other model requests
			<-d.asked
		}
		began := time.Now()
		if err := d.ask(ctx, d.bot, ours, i); err != nil {
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
	answered, echoed, err := beside(200, one, func(i int) error { return d.ask(ctx, echo, theirs, i) })
	if err != nil {
		return err
	}
	slices.Sort(added)
	b.put(percentiles("from the message to the model's request", 5, 25, added, "", nil)...)
	b.put(percentiles("from the message to the answer, instant model", 0, 0, answered, plainBot, echoed)...)

	// All rooms at once: each sends its next message right after the answer.
	rate, _, err := d.rate(ctx, d.bot, ours, 2000)
	if err != nil {
		return err
	}
	plain, _, err := d.rate(ctx, echo, theirs, 2000)
	b.put(figure{What: fmt.Sprintf("answers a second in %d rooms, instant model (aim: more than 200)", len(ours)), Value: rate, Unit: "/s", Baseline: plain, Plain: plainBot})
	return err
}

// rate returns how many messages a second user answers in rooms, of total, and the sorted milliseconds
// that each waited.
func (d *post) rate(ctx context.Context, user string, rooms []string, total int) (rate float64, waited []float64, err error) {
	began, asked := time.Now(), map[string]time.Time{}
	say := func(room string) {
		asked[room] = time.Now()
		d.server.Say(d.you, room, "hello")
	}
	for _, room := range rooms {
		say(room)
	}
	for said := len(rooms); len(waited) < total; {
		in, err := d.replies(ctx, user)
		if err != nil {
			return 0, nil, fmt.Errorf("after %d answers: %w", len(waited), err)
		}
		for _, room := range in {
			waited = append(waited, milliseconds(time.Since(asked[room])))
			if said < total {
				say(room)
				said++
			}
		}
	}
	slices.Sort(waited)
	return float64(total) / time.Since(began).Seconds(), waited, nil
}
