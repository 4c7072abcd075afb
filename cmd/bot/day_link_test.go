package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/matrix/peer"
	"reverie/internal/test/expect"
)

// link passes requests to a handler without a network. In a synctest bubble nothing may wait for a
// socket, because that stops the clock.
type link struct {
	handler http.Handler

	mu   sync.Mutex
	down bool
	open map[*context.CancelCauseFunc]struct{} // of the requests under way
}

func newLink(h http.Handler) *link {
	return &link{handler: h, open: map[*context.CancelCauseFunc]struct{}{}}
}

var errDown = errors.New("connection refused")

// cut ends all open requests and refuses new ones until restore.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for cancel := range l.open {
		(*cancel)(errDown)
	}
}

func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// busy reports whether a request is under way.
func (l *link) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) > 0
}

// RoundTrip implements http.RoundTripper. An answer arrives as a whole.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	l.mu.Lock()
	down := l.down
	l.open[&cancel] = struct{}{}
	l.mu.Unlock()
	if down {
		cancel(errDown)
	}
	answer, done := httptest.NewRecorder(), make(chan struct{})
	answer.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	go func() {
		defer func() {
			if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
				panic(p)
			} else if p != nil {
				cancel(io.ErrUnexpectedEOF)
			}
			l.mu.Lock()
			delete(l.open, &cancel)
			l.mu.Unlock()
			close(done)
		}()
		if !down {
			served := r.Clone(ctx)
			served.RequestURI, served.Body = r.URL.RequestURI(), io.NopCloser(bytes.NewReader(body))
			l.handler.ServeHTTP(answer, served)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	cancel(nil)
	return answer.Result(), nil
}

// named is a question, as in "q-ann-17".
var named = regexp.MustCompile(`\bq-[a-z]+-\d+\b`)

// echoModel is a model that answers with the names of the questions since its last answer.
type echoModel struct{}

func (echoModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var names []string
	for _, msg := range slices.Backward(q.Messages) {
		if msg.Role == "assistant" {
			break
		}
		if msg.Role == "user" {
			names = append(named.FindAllString(msg.Content, -1), names...)
		}
	}
	time.Sleep(time.Second)
	words := append(names, strings.Fields("are good questions, and this is what there is to say to them: not much, but said with care.")...)
	streamAnswer(w, strings.Join(words, " "))
}

// streamAnswer writes a model's answer.
func streamAnswer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
	fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// human is a person with an encrypted client who asks planned questions and records readable answers.
type human struct {
	*peer.Peer
	name string
	plan []asking
	bot  string
	came string // the event that invited them; what is older they may see, but not read

	mu      sync.Mutex
	asked   map[string]asking
	answers map[string]map[string]bool // question → events that name it → still being written
	plain   []string                   // events of the bot that were not encrypted
	unread  map[string]error           // events that cannot be decrypted
	notices []string
	replied chan bool // a complete message of the bot; nil = not wanted
}

// asking is a question at a time of the day.
type asking struct {
	at         time.Duration
	name, room string
	group      bool
}

// person logs in, and keeps the client running until the test ends.
func (d *day) person(name string) *human {
	d.t.Helper()
	d.home.Account(name, name+"-secret")
	p := expect.Must(peer.Login(d.t.Context(), peer.Config{
		Homeserver: dayURL, User: name, Password: name + "-secret", DB: filepath.Join(d.t.TempDir(), "peer.db"), HTTP: d.link,
	}))(d.t)
	h := &human{Peer: p, name: name, bot: d.bot, asked: map[string]asking{}, answers: map[string]map[string]bool{}, unread: map[string]error{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			d.t.Errorf("%s: %v", name, err)
		}
	})
	running.Go(func() { h.listen(ctx) })
	d.ends = append(d.ends, func() { cancel(); running.Wait(); p.Close() })
	return h
}

func (h *human) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-h.Events():
			h.hear(e)
		}
	}
}

func (h *human) hear(e peer.Event) {
	if e.Sender != h.bot {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Kind {
	case peer.Undecryptable:
		if e.ID > h.came { // the double counts its events
			h.unread[e.ID] = e.Err
		}
	case peer.Message, peer.Edit:
		delete(h.unread, e.ID)
		if !e.Encrypted {
			h.plain = append(h.plain, e.Body)
		}
		if e.Notice {
			h.notices = append(h.notices, e.Body)
			return
		}
		if !e.Live && h.replied != nil {
			h.replied <- true
		}
		for _, name := range named.FindAllString(e.Body, -1) {
			if h.answers[name] == nil {
				h.answers[name] = map[string]bool{}
			}
			h.answers[name][e.ID] = e.Live
		}
	}
}

// told reports whether a notice of the bot said text.
func (h *human) told(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.notices, func(s string) bool { return strings.Contains(s, text) })
}

// talk asks the planned questions at their times until ctx ends, and retries while the homeserver is down.
func (h *human) talk(ctx context.Context, t *testing.T, began time.Time) {
	for _, q := range h.plan {
		if !sleepUntil(ctx, began.Add(q.at)) {
			return
		}
		_ = h.Typing(ctx, q.room, true) // only noise
		for {
			var err error
			if q.group {
				_, err = h.SayTo(ctx, q.room, "what about "+q.name+"?", h.bot)
			} else {
				_, err = h.Say(ctx, q.room, "what about "+q.name+"?")
			}
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), errDown.Error()) {
				t.Errorf("%s asks %s: %v", h.name, q.name, err)
			}
			if !sleepUntil(ctx, time.Now().Add(20*time.Second)) {
				return
			}
		}
		h.mu.Lock()
		h.asked[q.name] = q
		h.mu.Unlock()
	}
	<-ctx.Done() // goroutines are counted
}

// settled checks that every question so far has one finished answer, and that every event was readable.
func (h *human) settled(t *testing.T, until time.Duration) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range h.plan {
		if q.at > until {
			break
		}
		events := h.answers[q.name]
		_, asked := h.asked[q.name]
		switch {
		case !asked:
			t.Errorf("after %s: %s could not be asked (at %s)", until, q.name, q.at)
		case len(events) != 1:
			t.Errorf("after %s: %s, asked at %s, has %d answers: %v", until, q.name, q.at, len(events), slices.Sorted(maps.Keys(events)))
		case slices.Contains(slices.Collect(maps.Values(events)), true):
			t.Errorf("after %s: the answer to %s is never finished", until, q.name)
		}
	}
	if len(h.unread) > 0 || len(h.plain) > 0 {
		t.Errorf("after %s: %s cannot read %v, and got in plain text %q", until, h.name, h.unread, h.plain)
	}
}

// plan spreads questions over the hours irregularly, with none in the last 15 minutes.
func plan(random *rand.Rand, name string, hours []int, perHour int, rooms ...string) (list []asking) {
	var times []time.Duration
	for _, h := range hours {
		for n := 0; n < perHour; {
			at := time.Duration(h)*time.Hour + time.Duration(random.IntN(45*60))*time.Second
			for range min([]int{1, 1, 1, 2, 5}[random.IntN(5)], perHour-n) {
				times = append(times, at)
				n++
			}
		}
	}
	slices.Sort(times)
	for i, at := range times {
		r := random.IntN(len(rooms))
		list = append(list, asking{at: at, name: "q-" + name + "-" + itoa(i), room: rooms[r], group: r > 0})
	}
	return list
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
