package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/llm/rehearsal"
	"reverie/internal/matrix/matrixtest"
)

// TestFloodAtStart: five hundred messages wait when the bot starts. All reach the
// model, a few at a time, in the order of their rooms; what one person wrote is
// answered together, and not message by message.
// Holds F15.
func TestFloodAtStart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs the real binary: left out with -short")
	}
	const rooms, each = 5, 100
	home := matrixtest.Start(t)
	you, bot := home.Account("you", password("you")), home.Account("reverie", password("reverie"))
	m := newFloodModel(t)
	p := startBot(t, buildBot(t), home.URL, bot, m.url, you)
	var ids []string
	for range rooms {
		ids = append(ids, home.Room(you, matrixtest.NewRoom{Direct: true, Invite: []string{bot}}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, room := range ids {
		must(t, home.Await(ctx, func() bool { return home.Membership(room, bot) == "join" }))
		home.Say(you, room, "hello") // the first answer of all is a long one
		must(t, home.Await(ctx, func() bool { return home.Read(room, bot) != "" }))
	}
	p.settle(t, rooms)
	p.kill()
	before := map[string]int{}
	for _, room := range ids {
		before[room] = len(answersIn(t, home, room, bot))
	}
	for i := range rooms * each {
		home.Say(you, ids[i%rooms], fmt.Sprintf("question %d quickly please", i+1))
	}
	p.start(t, "")
	p.settle(t, rooms*(each+1))

	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range rooms * each {
		if !m.seen[i+1] {
			t.Errorf("the model never saw question %d", i+1)
		}
	}
	if m.most > 4 {
		t.Errorf("%d turns ran at the same time, want 4 at most", m.most)
	}
	for i, room := range ids {
		got := answersIn(t, home, room, bot)[before[room]:]
		if len(got) < each/20 || len(got) > each/20+5 {
			t.Errorf("room %d: %d answers to %d messages: %v", i, len(got), each, got)
		}
		for j, n := range got {
			if j > 0 && n <= got[j-1] {
				t.Errorf("room %d is answered out of order: %v", i, got)
			}
		}
		if last := rooms*(each-1) + i + 1; len(got) > 0 && got[len(got)-1] != last {
			t.Errorf("room %d: the last answer is to question %d, want %d", i, got[len(got)-1], last)
		}
	}
}

// settle waits until so many messages were taken in, and all are dealt with.
func (p *process) settle(t *testing.T, messages int) {
	t.Helper()
	until(t, "not all messages are taken in and dealt with", func() bool {
		return value[int](t, p, `SELECT count(*) FROM inbox`) == messages &&
			value[int](t, p, `SELECT (SELECT count(*) FROM inbox WHERE state <> 'done') + (SELECT count(*) FROM outbox WHERE state <> 'sent')`) == 0
	})
}

// answersIn lists, for each message of the bot in a room, the question that it
// names as it reads in the end; 0 = none.
func answersIn(t *testing.T, home *matrixtest.Server, room, bot string) []int {
	t.Helper()
	type content struct {
		Body    string `json:"body"`
		Relates struct {
			Type  string `json:"rel_type"`
			Event string `json:"event_id"`
		} `json:"m.relates_to"`
		New *struct {
			Body string `json:"body"`
		} `json:"m.new_content"`
	}
	var order []string
	texts := map[string]string{}
	for _, raw := range home.Events(room) {
		var e struct {
			ID      string `json:"event_id"`
			Sender  string
			Type    string
			Content content
		}
		must(t, json.Unmarshal(raw, &e))
		switch {
		case e.Sender != bot || e.Type != "m.room.message":
		case e.Content.Relates.Type == "m.replace" && e.Content.New != nil:
			texts[e.Content.Relates.Event] = e.Content.New.Body
		default:
			order = append(order, e.ID)
			texts[e.ID] = e.Content.Body
		}
	}
	numbers := make([]int, len(order))
	for i, id := range order {
		for _, q := range numberRE.FindAllStringSubmatch(texts[id], -1) {
			numbers[i], _ = strconv.Atoi(q[1]) // digits
		}
	}
	return numbers
}

var numberRE = regexp.MustCompile(`question (\d+) quickly please`)

// floodModel is the rehearsal model, noting what it was shown.
type floodModel struct {
	url string

	mu        sync.Mutex
	seen      map[int]bool
	now, most int
}

func newFloodModel(t *testing.T) *floodModel {
	m := &floodModel{seen: map[int]bool{}}
	inner := rehearsal.Handler(rehearsal.Config{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") { // is asked about the model
			inner.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the bot was killed while it was asking
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		m.mu.Lock()
		m.now++
		m.most = max(m.most, m.now)
		for _, q := range numberRE.FindAllStringSubmatch(string(body), -1) {
			n, _ := strconv.Atoi(q[1]) // digits
			m.seen[n] = true
		}
		m.mu.Unlock()
		defer func() { m.mu.Lock(); m.now--; m.mu.Unlock() }()
		time.Sleep(50 * time.Millisecond)
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	m.url = server.URL + "/v1"
	return m
}
