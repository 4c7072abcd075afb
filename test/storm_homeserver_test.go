package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/llm/rehearsal"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/test/expect"
)

// TestStormOnTheHomeserver is TestStorm with the real homeserver and encryption in all rooms. At every
// fourth kill the homeserver is stopped or killed, too, and restarted with its data. In the long storm
// that happens at any moment.
// Holds F2, F12.
func TestStormOnTheHomeserver(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the real homeserver: left out with -short")
	}
	kills, long := number(t, "REVERIE_STORM", 4), os.Getenv("REVERIE_STORM") != ""
	seed := uint64(number(t, "REVERIE_STORM_SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("%d kills, REVERIE_STORM_SEED=%d", kills, seed)

	d := startDendrite(t)
	s := newStorm(t, seed, d, true)
	s.blow(t, kills, func(i int) {
		s.kill(t)
		s.bot.start(t, "")
		switch {
		case i%4 == 2 && long:
			s.quake(t, d)
		case i%4 == 2:
			s.pause(t, d)
		}
	})
	s.verdict(t)
}

// pause stops the homeserver while no request is open, and starts it again. The short storm does only
// this: a request during the shutdown may fail and still take effect, in rare cases so late that the
// bot has sent the message again and redacts one. Waiting for that is for the long storm.
func (s *storm) pause(t *testing.T, d *dendrite) {
	t.Helper()
	s.talk.Lock()
	defer s.talk.Unlock()
	s.settle(t)
	d.end(t, s.rand.IntN(2) == 0)
	d.start(t)
	s.hits["homeserver ended in a pause"]++
}

// quake stops the homeserver at a random moment or between the effect and the response of a bot's
// request, and starts it again. Sometimes the bot is killed meanwhile.
//
// No question is being sent then: a client that repeats a request would ask twice, because a
// restarted homeserver knows no transaction IDs.
func (s *storm) quake(t *testing.T, d *dendrite) {
	t.Helper()
	kill, together := s.rand.IntN(2) == 0, s.rand.IntN(2) == 0
	kind := "homeserver stopped"
	if kill {
		kind = "homeserver killed"
	}
	fallen := make(chan struct{})
	fall := sync.OnceFunc(func() {
		s.talk.Lock()
		d.end(t, kill)
		close(fallen)
	})
	limit := time.Duration(s.rand.IntN(1800)) * time.Millisecond
	if s.rand.IntN(3) > 0 {
		endpoint := []string{"send", "send", "send", "sync", "sendToDevice"}[s.rand.IntN(5)]
		defer d.meet(s.botID, endpoint, s.rand.IntN(3), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			fall()
			matrixtest.Drop()(w, r, next)
		})()
		limit = 2500 * time.Millisecond
	}
	select {
	case <-fallen:
		kind += " in a request"
	case <-time.After(limit):
		fall()
	}
	if together {
		kind += ", bot too"
		s.bot.kill()
	}
	d.start(t)
	s.talk.Unlock()
	if together {
		s.bot.start(t, "")
	}
	s.hits[kind]++
}

// dendrite is the real homeserver. The bot and the people reach it through proxies whose addresses
// survive a restart.
type dendrite struct {
	bins, dir string
	server    *homeserver.Server
	at        atomic.Pointer[url.URL]
	people    *httptest.Server
	bot       *httptest.Server

	mu     sync.Mutex
	up     context.Context // until the homeserver ends
	down   context.CancelFunc
	faults map[string]*pendingFault // by endpoint
}

type pendingFault struct {
	skip int
	do   matrixtest.Fault
}

func startDendrite(t *testing.T) *dendrite {
	t.Helper()
	d := &dendrite{bins: buildHomeserver(t), dir: t.TempDir(), faults: map[string]*pendingFault{}}
	d.start(t)
	t.Cleanup(func() { _ = d.server.Stop() })
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(d.at.Load()) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		// An unreachable homeserver breaks the connection.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	d.people, d.bot = httptest.NewServer(d.cut(proxy)), httptest.NewServer(d.faulty(proxy))
	t.Cleanup(d.people.Close)
	t.Cleanup(d.bot.Close)
	return d
}

func (d *dendrite) start(t *testing.T) {
	t.Helper()
	server := expect.Must(homeserver.Start(t.Context(), homeserver.Config{BinDir: d.bins, Dir: d.dir}))(t)
	at := expect.Must(url.Parse(server.URL))(t)
	d.server = server
	d.at.Store(at)
	up, down := context.WithCancel(context.Background())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.up, d.down = up, down
}

// cut breaks people's connections before the homeserver ends. A Dendrite that shuts down returns sync
// tokens past events that it does not show. The bot must cope with that, the test's people need not.
func (d *dendrite) cut(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		up := d.up
		d.mu.Unlock()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(up, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (d *dendrite) end(t *testing.T, kill bool) {
	d.mu.Lock()
	d.down()
	d.mu.Unlock()
	if kill {
		d.server.Kill()
	} else if err := d.server.Stop(); err != nil {
		t.Error(err)
	}
}

// faulty applies the pending faults to requests.
func (d *dendrite) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint := endpointOf(r.URL.Path)
		d.mu.Lock()
		f := d.faults[endpoint]
		if f != nil {
			if f.skip--; f.skip >= 0 {
				f = nil
			} else {
				delete(d.faults, endpoint)
			}
		}
		d.mu.Unlock()
		if f != nil {
			f.do(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// endpointOf returns the endpoint name of a path, as matrixtest has it.
func endpointOf(path string) string {
	_, path, _ = strings.Cut(path, "/_matrix/client/v3/")
	parts := strings.Split(path, "/")
	switch {
	case parts[0] == "rooms" && len(parts) > 2:
		return parts[2]
	case parts[0] == "keys" && len(parts) > 1:
		return "keys_" + parts[1]
	}
	return parts[0]
}

func (d *dendrite) meet(_, endpoint string, skip int, f matrixtest.Fault) (remove func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults[endpoint] = &pendingFault{skip, f}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.faults, endpoint)
	}
}

func (d *dendrite) address() string { return d.people.URL }
func (d *dendrite) relay() string   { return d.bot.URL }

func (d *dendrite) account(t *testing.T, name string) string {
	t.Helper()
	return expect.Must(d.server.Register(t.Context(), name, password(name)))(t)
}

func (d *dendrite) forget() {} // it forgets at its end

func (d *dendrite) room(t *testing.T, r stormRoom, bot string) string {
	t.Helper()
	q := peer.Room{Name: r.name, Direct: !r.group, Encrypted: r.encrypted, Invite: []string{bot}}
	for _, p := range r.asking[1:] {
		q.Invite = append(q.Invite, p.UserID())
	}
	id := expect.Must(r.asking[0].CreateRoom(t.Context(), q))(t)
	for _, p := range r.asking[1:] {
		expect.OK(t, p.Join(t.Context(), id))
	}
	return id
}

func (d *dendrite) timeline(t *testing.T, r stormRoom) []json.RawMessage {
	t.Helper()
	events := expect.Must(r.asking[0].RawTimeline(t.Context(), r.id, 20000))(t)
	if len(events) == 0 || !strings.Contains(string(events[len(events)-1]), `"m.room.create"`) {
		t.Fatalf("%s: the homeserver's %d events do not begin with the making of the room", r.name, len(events))
	}
	return events
}

// TestFloodAtStart: five hundred messages wait when the bot starts. All reach the model, a few at a
// time, in the order of their rooms; the messages of one person are answered together.
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
		expect.OK(t, home.Await(ctx, func() bool { return home.Membership(room, bot) == "join" }))
		home.Say(you, room, "hello") // the very first answer is a long one
		expect.OK(t, home.Await(ctx, func() bool { return home.Read(room, bot) != "" }))
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

// settle waits until messages messages were received and all are handled.
func (p *process) settle(t *testing.T, messages int) {
	t.Helper()
	until(t, "not all messages are taken in and dealt with", func() bool {
		return value[int](t, p, `SELECT count(*) FROM inbox`) == messages &&
			value[int](t, p, `SELECT (SELECT count(*) FROM inbox WHERE state <> 'done') + (SELECT count(*) FROM outbox WHERE state <> 'sent')`) == 0
	})
}

// answersIn lists, for each message of the bot in a room, the question number in its last version; 0 =
// none.
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
		expect.OK(t, json.Unmarshal(raw, &e))
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

// floodModel is the rehearsal model that records its prompts.
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
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") { // a request about the model itself
			inner.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the bot was killed during the request
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
