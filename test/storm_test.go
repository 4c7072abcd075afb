package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/llm/rehearsal"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/test/expect"
)

// patience limits the wait for an answer, across all kills.
const patience = 90 * time.Second

// TestStorm kills the real binary at random moments while people talk to it in four rooms. In the end
// every question has exactly one answer, all members could read everything, and the database is whole.
//
// REVERIE_STORM is the number of kills (15), REVERIE_STORM_SEED the seed.
// Holds F8, F10.
func TestStorm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs the real binary for half a minute: left out with -short")
	}
	kills := number(t, "REVERIE_STORM", 15)
	seed := uint64(number(t, "REVERIE_STORM_SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("%d kills, REVERIE_STORM_SEED=%d", kills, seed)

	s := newStorm(t, seed, &fake{Server: matrixtest.Start(t)}, false)
	s.blow(t, kills, func(int) { s.kill(t); s.bot.start(t, "") })
	s.verdict(t)
}

// blow lets people talk in all rooms while strike is called times times.
func (s *storm) blow(t *testing.T, times int, strike func(i int)) {
	t.Helper()
	var talk sync.WaitGroup
	stop := make(chan struct{})
	for i, r := range s.rooms {
		talk.Go(func() { s.converse(t, r, rand.New(rand.NewPCG(s.seed, uint64(i))), stop) })
	}
	for i := range times {
		strike(i)
		if t.Failed() {
			t.Logf("stopped after strike %d", i+1)
			break
		}
	}
	close(stop)
	talk.Wait()
}

// TestAnswerAfterQuietRestart: an answer that was ready at the kill is sent right after the restart,
// even without new messages: the first /sync must not wait for news.
func TestAnswerAfterQuietRestart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs the real binary: left out with -short")
	}
	home := &fake{Server: matrixtest.Start(t)}
	s := newStorm(t, 1, home, false)
	r := s.rooms[0]
	hook := home.Fault(matrixtest.On("send").By(s.botID).Times(1), func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		_ = s.bot.cmd.Process.Kill()
		matrixtest.Drop()(w, req, next)
	})
	expect.Must(r.asking[0].Say(t.Context(), r.id, "question 1 quickly please"))(t)
	<-s.bot.exited
	if hook.Hits() != 1 {
		t.Fatal("the bot ended before it sent anything")
	}
	s.bot.start(t, "")
	if !s.await(r.asking[0].UserID(), 1, 15*time.Second) {
		t.Error("no answer within 15 s of the restart, although it was ready before")
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is no number", name, text)
	}
	return n
}

// town is the homeserver of a storm.
type town interface {
	address() string // for people
	relay() string   // for the bot
	account(t *testing.T, name string) (user string)
	room(t *testing.T, r stormRoom, bot string) (id string) // with its people, and the bot invited
	timeline(t *testing.T, r stormRoom) []json.RawMessage   // the events that the homeserver stores

	// meet applies a fault to one request of the bot to an endpoint, after skipping some.
	meet(bot, endpoint string, skip int, f matrixtest.Fault) (remove func())
	forget() // forgets its transaction IDs, like a restart
}

// fake is the homeserver inside the test.
type fake struct{ *matrixtest.Server }

func (f *fake) address() string                          { return f.URL }
func (f *fake) relay() string                            { return f.URL }
func (f *fake) account(_ *testing.T, name string) string { return f.Account(name, password(name)) }
func (f *fake) forget()                                  { f.ForgetTransactions() }

func (f *fake) room(_ *testing.T, r stormRoom, bot string) string {
	q := matrixtest.NewRoom{Name: r.name, Direct: !r.group, Encrypted: r.encrypted, Invite: []string{bot}}
	for _, p := range r.asking[1:] {
		q.Join = append(q.Join, p.UserID())
	}
	return f.Room(r.asking[0].UserID(), q)
}

func (f *fake) timeline(_ *testing.T, r stormRoom) []json.RawMessage { return f.Events(r.id) }

func (f *fake) meet(bot, endpoint string, skip int, fault matrixtest.Fault) (remove func()) {
	return f.Fault(matrixtest.On(endpoint).By(bot).After(skip).Times(1), fault).Remove
}

// stormRoom is a room with one open question at a time: the bot answers simultaneous messages
// together, which could not be counted.
type stormRoom struct {
	id, name         string
	asking           []*peer.Peer
	group, encrypted bool
}

// question is a question of a person.
type question struct {
	event string
	room  stormRoom
}

// said is the current version of a bot's message.
type said struct {
	room, body, replyTo string
	live                bool
}

type storm struct {
	town  town
	bot   *process
	botID string
	rooms []stormRoom
	seed  uint64
	rand  *rand.Rand // decides the kills; main goroutine only
	hits  map[string]int

	talk sync.RWMutex // held while a question is sent; locked by faults that must not interrupt that

	mu      sync.Mutex
	changed chan struct{}
	asked   int                        // number of the newest question
	held    map[int]question           // questions that the homeserver has acknowledged
	seen    map[string]map[string]said // person → message → its current version
	faults  []string
}

// newStorm starts the bot and creates its four rooms, half or all of them encrypted.
func newStorm(t *testing.T, seed uint64, home town, all bool) *storm {
	t.Helper()
	s := &storm{
		town: home, seed: seed, rand: rand.New(rand.NewPCG(seed, 99)), hits: map[string]int{},
		changed: make(chan struct{}), held: map[int]question{}, seen: map[string]map[string]said{},
	}
	you, friend := s.person(t, "you"), s.person(t, "friend")
	s.botID = home.account(t, "reverie")
	s.start(t, stormModel(t), you.UserID(), friend.UserID())
	both := []*peer.Peer{you, friend}
	for _, r := range []stormRoom{
		{name: "direct", asking: both[:1], encrypted: true}, {name: "direct 2", asking: both[:1], encrypted: all},
		{name: "group", asking: both, group: true, encrypted: true}, {name: "group 2", asking: both, group: true, encrypted: all},
	} {
		r.id = home.room(t, r, s.botID)
		for _, p := range r.asking {
			waitJoined(t, p, r.id, s.botID)
			waitJoined(t, p, r.id, r.asking[len(r.asking)-1].UserID())
		}
		s.rooms = append(s.rooms, r)
	}
	return s
}

// person logs a person in and records their events until the test ends.
func (s *storm) person(t *testing.T, name string) *peer.Peer {
	t.Helper()
	p := expect.Must(peer.Login(t.Context(), peer.Config{
		Homeserver: s.town.address(), User: s.town.account(t, name), Password: password(name), DB: filepath.Join(t.TempDir(), "peer.db"),
	}))(t)
	s.seen[p.UserID()] = map[string]said{}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	running.Go(func() { s.listen(ctx, p) })
	t.Cleanup(func() { cancel(); running.Wait(); _ = p.Close() })
	return p
}

func (s *storm) listen(ctx context.Context, p *peer.Peer) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-p.Events():
			s.note(p.UserID(), e)
		}
	}
}

func (s *storm) note(person string, e peer.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Kind == peer.Undecryptable:
		s.faults = append(s.faults, fmt.Sprintf("%s cannot read %s of %s in %s: %v", person, e.ID, e.Sender, e.Room, e.Err))
	case e.Sender != s.botID || e.Kind != peer.Message && e.Kind != peer.Edit:
		return
	case e.Kind == peer.Message && s.seen[person][e.ID] != said{}:
		s.faults = append(s.faults, fmt.Sprintf("%s got %s twice", person, e.ID))
	}
	if e.Kind == peer.Message || e.Kind == peer.Edit {
		m := said{e.Room, e.Body, e.ReplyTo, e.Live}
		if e.Kind == peer.Edit { // an edit answers the same question as its message
			m.replyTo = s.seen[person][e.ID].replyTo
		}
		s.seen[person][e.ID] = m
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// start starts the bot. Its context window holds the whole storm: a summary would be announced in the
// room, and that message answers no question.
func (s *storm) start(t *testing.T, model string, owners ...string) {
	t.Helper()
	s.bot = startBot(t, buildBot(t), s.town.relay(), s.botID, model, owners...)
	s.bot.restart(t, ", window: 200000}")
}

// stormModel is the rehearsal model: fast, or slow enough for drafts.
func stormModel(t *testing.T) string {
	quick, slow := rehearsal.Handler(rehearsal.Config{}), rehearsal.Handler(rehearsal.Config{Pace: 60 * time.Millisecond})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the bot was killed during the request
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		all := questionRE.FindAllStringSubmatch(string(body), -1)
		if len(all) > 0 && all[len(all)-1][2] == "slowly" {
			slow.ServeHTTP(w, r)
			return
		}
		time.Sleep(30 * time.Millisecond)
		quick.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

var questionRE = regexp.MustCompile(`question (\d+) (slowly|quickly) please`)

// converse asks questions until stop is closed, each after the answer to the last one.
func (s *storm) converse(t *testing.T, r stormRoom, chance *rand.Rand, stop <-chan struct{}) {
	for i := 0; ; i++ {
		s.mu.Lock()
		s.asked++
		n := s.asked
		s.mu.Unlock()
		pace := "quickly"
		if i > 0 && chance.IntN(6) == 0 { // the first answer is long in any case
			pace = "slowly"
		}
		p, text := r.asking[i%len(r.asking)], fmt.Sprintf("question %d %s please", n, pace)
		if err := s.ask(t.Context(), r, p, n, text); err != nil {
			t.Errorf("%s: ask %d: %v", r.name, n, err)
			return
		}
		if !s.await(p.UserID(), n, patience) {
			t.Errorf("%s: question %d has no answer after %s", r.name, n, patience)
			return
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(chance.IntN(150)) * time.Millisecond):
		}
	}
}

func (s *storm) ask(ctx context.Context, r stormRoom, p *peer.Peer, n int, text string) (err error) {
	var event string
	s.talk.RLock()
	defer s.talk.RUnlock()
	if r.group {
		event, err = p.SayTo(ctx, r.id, text, s.botID)
	} else {
		event, err = p.Say(ctx, r.id, text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[n] = question{event, r}
	return err
}

// await reports whether person gets a finished answer to question n in time.
func (s *storm) await(person string, n int, within time.Duration) bool {
	limit := time.After(within)
	for {
		s.mu.Lock()
		changed := s.changed
		for _, m := range s.seen[person] {
			if !m.live && answers(m.body) == n {
				s.mu.Unlock()
				return true
			}
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-limit:
			return false
		}
	}
}

// answers returns the number of the question that a text answers, or 0.
func answers(body string) int {
	m := questionRE.FindStringSubmatch(body)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // digits
	return n
}

// kill sends SIGKILL to the bot: at a random moment, just before a request takes effect, between its
// effect and its response, or milliseconds after. Sometimes the homeserver forgets the transaction
// IDs meanwhile, like a restart.
func (s *storm) kill(t *testing.T) {
	t.Helper()
	kind := "at some moment"
	limit := time.Duration(s.rand.IntN(1800)) * time.Millisecond
	if s.rand.IntN(8) == 0 {
		limit = 3 * time.Second // or slow requests would never finish
	}
	if s.rand.IntN(3) > 0 {
		endpoints := []string{"send", "send", "send", "sync", "sync", "sync", "sync", "sendToDevice", "keys_query", "keys_claim", "typing", "receipt", "state"}
		endpoint := endpoints[s.rand.IntN(len(endpoints))]
		skip, moment, pause := s.rand.IntN(4), s.rand.IntN(3), time.Duration(s.rand.IntN(4000))*time.Microsecond
		kind = []string{"before ", "in ", "behind "}[moment] + endpoint
		remove := s.town.meet(s.botID, endpoint, skip, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			switch moment {
			case 1:
				next.ServeHTTP(httptest.NewRecorder(), r)
			case 2:
				next.ServeHTTP(w, r)
				_ = http.NewResponseController(w).Flush() // the client may be gone
				time.Sleep(pause)
			}
			_ = s.bot.cmd.Process.Kill()
			matrixtest.Drop()(w, r, next)
		})
		defer remove()
		limit = 2500 * time.Millisecond
	}
	select {
	case <-s.bot.exited:
		if state := s.bot.cmd.ProcessState; state != nil && state.Exited() {
			t.Errorf("the bot ended by itself: %s", state)
		}
		s.hits[kind]++
	case <-time.After(limit):
		s.bot.kill()
		s.hits["at some moment"]++
	}
	if s.rand.IntN(4) == 0 {
		s.town.forget()
	}
}

// settle waits until the bot has handled everything, and the person in all rooms has seen it.
func (s *storm) settle(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	asked := s.asked
	s.mu.Unlock()
	limit := time.Now().Add(patience)
	for n := range asked {
		s.await(s.rooms[0].asking[0].UserID(), n+1, time.Until(limit))
	}
	for ; time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		if s.leftOver(t) == "" {
			return
		}
	}
}

// leftOver lists unfinished rows of the queues.
func (s *storm) leftOver(t *testing.T) string {
	t.Helper()
	return value[string](t, s.bot, `SELECT ifnull(group_concat(row, ', '), '') FROM (
		SELECT 'inbox ' || state || ' ' || id || ' ' || error AS row FROM inbox WHERE state <> 'done'
		UNION ALL SELECT 'outbox ' || state || ' ' || id || ' ' || error FROM outbox WHERE state <> 'sent'
		UNION ALL SELECT 'pending_redaction ' || event_id FROM pending_redaction)`)
}

func (s *storm) checkDatabase(t *testing.T) {
	t.Helper()
	expect.Equal(t, value[int](t, s.bot, `SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'`), 0, "faults in the database")
	expect.Equal(t, s.leftOver(t), "", "left in the queues")
}

// verdict checks the result after the last question.
func (s *storm) verdict(t *testing.T) {
	t.Helper()
	s.settle(t)
	gone := s.redactedTwice(t)
	s.bot.kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		t.Error(f)
	}
	// The person who asks in all rooms sees all answers.
	byNumber := map[int][]string{}
	you := s.rooms[0].asking[0].UserID()
	for id, m := range s.seen[you] {
		if gone[id] {
			continue
		}
		n := answers(m.body)
		byNumber[n] = append(byNumber[n], id)
		if m.live || n == 0 || !strings.Contains(m.body, "I can say no more about it.") {
			t.Errorf("%s stays as %q (live %v)", id, m.body, m.live)
		}
		if q := s.held[n]; n != 0 && (m.room != q.room.id || q.room.group && m.replyTo != q.event) {
			t.Errorf("%s answers question %d in %s as a reply to %q; that was asked in %s as %s", id, n, m.room, m.replyTo, q.room.id, q.event)
		}
	}
	unanswered, twice := 0, 0
	for n := 1; n <= s.asked; n++ {
		switch ids := byNumber[n]; len(ids) {
		case 0:
			unanswered++
			t.Errorf("question %d (%s, %s) has no answer", n, s.held[n].room.name, s.held[n].event)
		case 1:
		default:
			twice++
			slices.Sort(ids)
			t.Errorf("question %d (%s, %s) has %d answers: %v", n, s.held[n].room.name, s.held[n].event, len(ids), ids)
		}
	}
	s.checkTimelines(t, gone)
	for _, bad := range []string{"panic", "DATA RACE"} {
		if strings.Contains(s.bot.log.String(), bad) {
			t.Errorf("the bot's log speaks of a %s", bad)
		}
	}
	s.checkDatabase(t)
	late := strings.Count(s.bot.log.String(), "a message cannot be read yet")
	t.Logf("%d questions, %d unanswered, %d answered twice, %d faults of reading, %d read late, %d taken back; killed: %v",
		s.asked, unanswered, twice, len(s.faults), late, len(gone), s.hits)
}

// redactedTwice returns the bot's redacted duplicates: messages whose echo came so late that they were
// sent again. For remaining duplicates it waits as long as the echo of a homeserver may take.
func (s *storm) redactedTwice(t *testing.T) map[string]bool {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		messages, gone := 0, map[string]bool{}
		for _, r := range s.rooms {
			for _, raw := range s.town.timeline(t, r) {
				var e struct {
					ID       string `json:"event_id"`
					Sender   string
					Type     string
					Content  map[string]json.RawMessage
					Unsigned struct {
						Because struct{ Sender string } `json:"redacted_because"`
					}
				}
				expect.OK(t, json.Unmarshal(raw, &e))
				switch {
				case e.Sender != s.botID || e.Type != "m.room.message" && e.Type != "m.room.encrypted":
				case len(e.Content) == 0 && e.Unsigned.Because.Sender == s.botID:
					gone[e.ID] = true
				case !strings.Contains(string(e.Content["m.relates_to"]), "m.replace"):
					messages++
				}
			}
		}
		if messages <= s.asked || time.Now().After(limit) {
			return gone
		}
	}
}

// checkTimelines compares what people saw with the homeserver's events: all questions, one answer
// message for each, and no plain text in encrypted rooms.
func (s *storm) checkTimelines(t *testing.T, gone map[string]bool) {
	t.Helper()
	var questions, answers int
	there := map[string]bool{}
	for _, r := range s.rooms {
		for _, raw := range s.town.timeline(t, r) {
			var e struct {
				ID      string `json:"event_id"`
				Sender  string
				Type    string
				Content struct {
					Relates struct {
						Type string `json:"rel_type"`
					} `json:"m.relates_to"`
				}
			}
			expect.OK(t, json.Unmarshal(raw, &e))
			if e.Type != "m.room.message" && e.Type != "m.room.encrypted" {
				continue
			}
			if e.Type == "m.room.message" && r.encrypted {
				t.Errorf("%s: sent in the clear: %s", r.name, raw)
			}
			there[e.ID] = true
			switch {
			case e.Sender != s.botID:
				questions++
			case e.Content.Relates.Type != "m.replace" && !gone[e.ID]:
				answers++
			}
		}
	}
	for n, q := range s.held {
		if !there[q.event] {
			t.Errorf("the homeserver has lost question %d (%s, %s), which it had acknowledged: no fault of the bot", n, q.room.name, q.event)
		}
	}
	if questions != s.asked || answers != s.asked {
		t.Errorf("%d questions were asked; the homeserver has %d, and %d messages of the bot that are no edits", s.asked, questions, answers)
	}
}
