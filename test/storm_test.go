package test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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
)

// patience is how long a question may stay without an answer, through all kills.
const patience = 90 * time.Second

// TestStorm kills the real binary again and again, at moments chosen by chance,
// while people talk to it in four rooms. Afterwards every question has exactly
// one answer, everybody could read everything, and the database is whole.
//
// REVERIE_STORM says how many kills (15), REVERIE_STORM_SEED which chances.
func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the real binary for half a minute: left out with -short")
	}
	kills := number(t, "REVERIE_STORM", 15)
	seed := uint64(number(t, "REVERIE_STORM_SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("%d kills, REVERIE_STORM_SEED=%d", kills, seed)

	s := newStorm(t, seed)
	var talk sync.WaitGroup
	stop := make(chan struct{})
	for i, r := range s.rooms {
		talk.Go(func() { s.converse(t, r, rand.New(rand.NewPCG(seed, uint64(i))), stop) })
	}
	for i := range kills {
		s.kill(t)
		s.bot.start(t, "")
		if t.Failed() {
			t.Logf("stopped after kill %d", i+1)
			break
		}
	}
	close(stop)
	talk.Wait()
	s.verdict(t)
}

// TestAnswerAfterQuietRestart: an answer that was ready when the bot was killed
// leaves as soon as the bot is back, also when nobody says anything meanwhile:
// the first /sync of a start must not wait for news.
func TestAnswerAfterQuietRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the real binary: left out with -short")
	}
	s := newStorm(t, 1)
	r := s.rooms[0]
	hook := s.home.Fault(matrixtest.On("send").By(s.botID).Times(1), func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		_ = s.bot.cmd.Process.Kill()
		matrixtest.Drop()(w, req, next)
	})
	if _, err := r.asking[0].Say(t.Context(), r.id, "question 1 quickly please"); err != nil {
		t.Fatal(err)
	}
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

// stormRoom is a room in which one question at a time is asked: what comes
// while a room is busy is answered together, and could not be counted.
type stormRoom struct {
	id     string
	name   string
	asking []*peer.Peer
	group  bool
}

// said is a message of the bot as a person sees it now.
type said struct {
	room, body string
	live       bool
}

type storm struct {
	home  *matrixtest.Server
	bot   *process
	botID string
	rooms []stormRoom
	rand  *rand.Rand // of the killing; main goroutine only
	hits  map[string]int

	mu      sync.Mutex
	changed chan struct{}
	asked   int                        // questions so far; the newest one's number
	seen    map[string]map[string]said // person → message → what it says
	faults  []string
}

func newStorm(t *testing.T, seed uint64) *storm {
	t.Helper()
	s := &storm{
		home: matrixtest.Start(t), rand: rand.New(rand.NewPCG(seed, 99)), hits: map[string]int{},
		changed: make(chan struct{}), seen: map[string]map[string]said{},
	}
	you, friend := s.person(t, "you"), s.person(t, "friend")
	s.botID = s.home.Account("reverie", password("reverie"))
	s.start(t, stormModel(t), you.UserID(), friend.UserID())
	both := []*peer.Peer{you, friend}
	for _, r := range []struct {
		name             string
		group, encrypted bool
	}{{"direct, encrypted", false, true}, {"direct, plain", false, false}, {"group, encrypted", true, true}, {"group, plain", true, false}} {
		room, asking := matrixtest.NewRoom{Name: r.name, Direct: !r.group, Encrypted: r.encrypted, Invite: []string{s.botID}}, both[:1]
		if r.group {
			room.Join, asking = []string{friend.UserID()}, both
		}
		id := s.home.Room(you.UserID(), room)
		for _, p := range asking {
			waitJoined(t, p, id, s.botID)
			waitJoined(t, p, id, asking[len(asking)-1].UserID())
		}
		s.rooms = append(s.rooms, stormRoom{id: id, name: r.name, asking: asking, group: r.group})
	}
	return s
}

// person logs somebody in and notes what they hear until the test ends.
func (s *storm) person(t *testing.T, name string) *peer.Peer {
	t.Helper()
	p, err := peer.Login(t.Context(), peer.Config{
		Homeserver: s.home.URL, User: s.home.Account(name, password(name)), Password: password(name), DB: filepath.Join(t.TempDir(), "peer.db"),
	})
	if err != nil {
		t.Fatal(err)
	}
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
		s.seen[person][e.ID] = said{e.Room, e.Body, e.Live}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// start writes a configuration and starts the bot.
func (s *storm) start(t *testing.T, model string, owners ...string) {
	t.Helper()
	p := &process{w: &world{bin: filepath.Join(t.TempDir(), "bot")}, dir: t.TempDir()}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", p.w.bin, "../cmd/bot").CombinedOutput(); err != nil {
		t.Fatalf("build the bot: %v\n%s", err, out)
	}
	quoted, err := json.Marshal(owners)
	if err != nil {
		t.Fatal(err)
	}
	p.config = filepath.Join(p.dir, "config.yaml")
	config := fmt.Sprintf("name: Reverie\ndata: ./data\ntimezone: UTC\nmatrix:\n  homeserver: %q\n  user: %q\n  password: ${E2E_PASSWORD}\n  owners: %s\nllm:\n  models:\n    - {name: local, base_url: %q, model: rehearsal}\n",
		s.home.URL, s.botID, quoted, model)
	if err := os.WriteFile(p.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start(t, password("reverie"))
	s.bot = p
	t.Cleanup(func() {
		p.kill()
		if path := os.Getenv("REVERIE_STORM_LOG"); path != "" {
			_ = os.WriteFile(path, []byte(p.log.String()), 0o600)
			t.Logf("log of the bot: %s", path)
		}
	})
}

// stormModel is the rehearsal model: quick, or slow enough that drafts are shown.
func stormModel(t *testing.T) string {
	quick, slow := rehearsal.Handler(rehearsal.Config{}), rehearsal.Handler(rehearsal.Config{Pace: 60 * time.Millisecond})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the bot was killed while it was asking
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

// converse asks one question after the other, each when the one before has its
// answer, until stop is closed.
func (s *storm) converse(t *testing.T, r stormRoom, chance *rand.Rand, stop <-chan struct{}) {
	for i := 0; ; i++ {
		s.mu.Lock()
		s.asked++
		n := s.asked
		s.mu.Unlock()
		pace := "quickly"
		if i > 0 && chance.IntN(6) == 0 { // the first answer is a long one anyway
			pace = "slowly"
		}
		p, text := r.asking[i%len(r.asking)], fmt.Sprintf("question %d %s please", n, pace)
		var err error
		if r.group {
			_, err = p.SayTo(t.Context(), r.id, text, s.botID)
		} else {
			_, err = p.Say(t.Context(), r.id, text)
		}
		if err != nil {
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

// await tells whether person gets a finished answer to question n in time.
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

// answers is the number of the question that a text answers; 0 when none.
func answers(body string) int {
	m := questionRE.FindStringSubmatch(body)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // digits
	return n
}

// kill ends the bot with kill -9: at some moment, or just before a request of its
// takes effect, or after that and before its answer, or within milliseconds of
// the answer. Sometimes the homeserver forgets the transactions meanwhile, as it
// does when it restarts.
func (s *storm) kill(t *testing.T) {
	t.Helper()
	kind := "at some moment"
	limit := time.Duration(s.rand.IntN(1800)) * time.Millisecond
	if s.rand.IntN(8) == 0 {
		limit = 3 * time.Second // or what takes long would never come to its end
	}
	if s.rand.IntN(3) > 0 {
		endpoints := []string{"send", "send", "send", "sync", "sync", "sync", "sync", "sendToDevice", "keys_query", "keys_claim", "typing", "receipt", "state"}
		endpoint := endpoints[s.rand.IntN(len(endpoints))]
		skip, moment, pause := s.rand.IntN(4), s.rand.IntN(3), time.Duration(s.rand.IntN(4000))*time.Microsecond
		kind = []string{"before ", "in ", "behind "}[moment] + endpoint
		hook := s.home.Fault(matrixtest.On(endpoint).By(s.botID).After(skip).Times(1), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			switch moment {
			case 1:
				next.ServeHTTP(httptest.NewRecorder(), r)
			case 2:
				next.ServeHTTP(w, r)
				_ = http.NewResponseController(w).Flush() // who is gone need not get it
				time.Sleep(pause)
			}
			_ = s.bot.cmd.Process.Kill()
			matrixtest.Drop()(w, r, next)
		})
		defer hook.Remove()
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
		s.home.ForgetTransactions()
	}
}

// verdict is called when everybody has stopped talking.
func (s *storm) verdict(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	asked := s.asked
	s.mu.Unlock()
	s.bot.kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		t.Error(f)
	}
	// The one who asks in all rooms sees all answers.
	byNumber := map[int][]string{}
	you := s.rooms[0].asking[0].UserID()
	for id, m := range s.seen[you] {
		n := answers(m.body)
		byNumber[n] = append(byNumber[n], id)
		if m.live || n == 0 || !strings.Contains(m.body, "I can say no more about it.") {
			t.Errorf("%s stays as %q (live %v)", id, m.body, m.live)
		}
	}
	for n := 1; n <= asked; n++ {
		if ids := byNumber[n]; len(ids) != 1 {
			slices.Sort(ids)
			t.Errorf("question %d has %d answers: %v", n, len(ids), ids)
		}
	}
	messages := 0
	for _, r := range s.rooms {
		messages += s.count(t, r)
	}
	if messages != asked {
		t.Errorf("the homeserver has %d messages of the bot that are no edits, for %d questions", messages, asked)
	}
	for _, bad := range []string{"panic", "cannot be decrypted", "may be lost"} {
		if strings.Contains(s.bot.log.String(), bad) {
			t.Errorf("the bot's log speaks of %q", bad)
		}
	}
	s.checkDatabase(t)
	t.Logf("%d questions; killed: %v", asked, s.hits)
}

// count is how many messages of the bot are in a room, edits left out. In an
// encrypted room all must be encrypted.
func (s *storm) count(t *testing.T, r stormRoom) int {
	t.Helper()
	n := 0
	for _, raw := range s.home.Events(r.id) {
		var e struct {
			Sender, Type string
			Content      struct {
				Relates struct {
					Type string `json:"rel_type"`
				} `json:"m.relates_to"`
			}
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		if e.Sender != s.botID || e.Content.Relates.Type == "m.replace" || e.Type != "m.room.message" && e.Type != "m.room.encrypted" {
			continue
		}
		if e.Type == "m.room.message" && strings.Contains(r.name, "encrypted") {
			t.Errorf("%s: sent in the clear: %s", r.name, raw)
		}
		n++
	}
	return n
}

func (s *storm) checkDatabase(t *testing.T) {
	t.Helper()
	db, err := sql.Open("sqlite", s.bot.data("bot.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var result string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&result); err != nil || result != "ok" {
		t.Errorf("integrity_check: %q, %v", result, err)
	}
	var left int
	if err := db.QueryRow(`SELECT (SELECT count(*) FROM inbox WHERE state = 'new') + (SELECT count(*) FROM outbox WHERE state IN ('pending', 'dead'))`).Scan(&left); err != nil {
		t.Error(err)
	} else if left > len(s.rooms) {
		// The last answer of a room may be seen before the bot has noted it.
		t.Errorf("%d messages are left in the queues", left)
	}
}
