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
func (b *bench) delivery(ctx context.Context, dir string) error {
	return b.withBot(ctx, dir, 3*time.Minute, func(ctx context.Context, d *post) error {
		stop, err := d.echo(ctx, dir)
		if err != nil {
			return err
		}
		defer stop()
		ours, err := d.rooms(ctx, d.bot, 50, 1)
		if err != nil {
			return err
		}
		theirs, err := d.rooms(ctx, d.server.Account("echo", "bench-password"), len(ours), 1)
		if err != nil {
			return err
		}
		return d.measure(ctx, b, ours, theirs)
	})
}

// scale measures one process with 10,000 people in 2,000 rooms that all write at once, again and again.
func (b *bench) scale(ctx context.Context, dir string) error {
	return b.withBot(ctx, dir, 9*time.Minute, func(ctx context.Context, d *post) error {
		const name = "10,000 people in 2,000 rooms, "
		began := time.Now()
		rooms, err := d.rooms(ctx, d.bot, 2000, 5)
		if err != nil {
			return err
		}
		b.put(figure{What: name + "until all are joined", Value: time.Since(began).Seconds(), Unit: "s"})
		before, total := processorTime(d.pid), 3*len(rooms)
		rate, waited, err := d.rate(ctx, rooms, total)
		if err != nil {
			return err
		}
		spent := processorTime(d.pid) - before
		b.put(percentiles(name+"from the message to the answer", 0, 0, waited, "", nil)...)
		info, err := os.Stat(filepath.Join(dir, "data", "bot.db"))
		if err != nil {
			return err
		}
		b.put(figure{What: name + "answers a second (aim: more than 300)", Value: rate, Unit: "/s"},
			figure{What: name + "processor time of the bot, an answer", Value: 1000 * spent / float64(total), Unit: "ms"},
			figure{What: name + "memory after 6,000 answers", Value: memoryOf(d.pid)["VmRSS"], Unit: "MB", Limit: 300},
			figure{What: name + "bot.db after 6,000 answers", Value: float64(info.Size()) / 1e6, Unit: "MB"})
		return nil
	})
}

// withBot runs the bot on a fake homeserver while do measures it.
func (b *bench) withBot(ctx context.Context, dir string, most time.Duration, do func(ctx context.Context, d *post) error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	d := &post{server: matrixtest.New(), asked: make(chan time.Time, 4096)}
	if err := d.server.Listen(); err != nil {
		return err
	}
	defer d.server.Stop()
	model := httptest.NewServer(http.HandlerFunc(d.model))
	defer model.Close()
	d.bot = d.server.Account("reverie", "bench-password")
	bot, err := b.botIn(ctx, dir, fmt.Sprintf("log: {level: error}\nmatrix: {homeserver: %q, user: %q, password: bench-password, owners: [\"@you:x\"], allow: [%q]}\nllm:\n  parallel: 16 # the model has no limit\n  models: [{name: instant, base_url: %q, model: instant}]\n",
		d.server.URL, d.bot, "*:"+d.server.Name, model.URL+"/v1"))
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
	return do(ctx, d)
}

// post is the measured traffic.
type post struct {
	server *matrixtest.Server
	bot    string
	pid    int            // of the bot
	asked  chan time.Time // times of model requests
	people int            // how many there are
	seen   int            // sends that were counted
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

// room is a room of user, which answers, with people of its own.
type room struct {
	id, user string
	people   []string
}

// say sends the nth message to a room. Its people take turns, and address user.
func (d *post) say(r room, n int) {
	d.server.Post(r.people[n%len(r.people)], r.id, "m.room.message",
		map[string]any{"msgtype": "m.text", "body": "hello", "m.mentions": map[string]any{"user_ids": []string{r.user}}})
}

// rooms makes n rooms of user with people of their own, and waits until user has joined. With one
// person each they are direct chats.
func (d *post) rooms(ctx context.Context, user string, n, people int) (all []room, err error) {
	for range n {
		r := room{user: user}
		for range people {
			d.people++
			r.people = append(r.people, d.server.Account(fmt.Sprint("person", d.people), "bench-password"))
		}
		r.id = d.server.Room(r.people[0], matrixtest.NewRoom{Name: fmt.Sprint("room ", d.people), Direct: people == 1, Join: r.people[1:], Invite: []string{user}})
		all = append(all, r)
	}
	for _, r := range all {
		if err := d.server.Await(ctx, func() bool { return d.server.Membership(r.id, user) == "join" }); err != nil {
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
func (d *post) ask(ctx context.Context, rooms []room, i int) error {
	r := rooms[i%len(rooms)]
	d.say(r, i)
	_, err := d.replies(ctx, r.user)
	return err
}

func (d *post) measure(ctx context.Context, b *bench, ours, theirs []room) error {
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
	rate, _, err := d.rate(ctx, ours, 2000)
	if err != nil {
		return err
	}
	plain, _, err := d.rate(ctx, theirs, 2000)
	b.put(figure{What: fmt.Sprintf("answers a second in %d rooms, instant model (aim: more than 200)", len(ours)), Value: rate, Unit: "/s", Baseline: plain, Plain: plainBot})
	return err
}

// rate returns how many messages a second are answered in rooms, of total, and the sorted milliseconds
// that each waited.
func (d *post) rate(ctx context.Context, rooms []room, total int) (rate float64, waited []float64, err error) {
	began, said, asked, byID := time.Now(), 0, map[string]time.Time{}, map[string]room{}
	say := func(r room) {
		asked[r.id] = time.Now()
		d.say(r, said)
		said++
	}
	for _, r := range rooms {
		byID[r.id] = r
		say(r)
	}
	for len(waited) < total {
		in, err := d.replies(ctx, rooms[0].user)
		if err != nil {
			return 0, nil, fmt.Errorf("after %d answers: %w", len(waited), err)
		}
		for _, id := range in {
			waited = append(waited, milliseconds(time.Since(asked[id])))
			if said < total {
				say(byID[id])
			}
		}
	}
	slices.Sort(waited)
	return float64(total) / time.Since(began).Seconds(), waited, nil
}
