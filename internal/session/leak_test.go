package session

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/dream"
	"reverie/internal/media"
	"reverie/internal/profile"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/test/expect"
	"reverie/internal/tool"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
)

const (
	stranger      = "@mallory:evil.example"
	leakHistories = 60 // histories, unless REVERIE_HISTORIES says how many
)

// TestNothingLeaks: in random histories, no request to the model, reply, notice, command or file holds text for others than
// its readers. Each history is made from its seed: -run 'TestNothingLeaks/seed=7$' repeats one, and REVERIE_SEED is the first.
func TestNothingLeaks(t *testing.T) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return otherwise
	}
	first, n := number("REVERIE_SEED", 1), number("REVERIE_HISTORIES", leakHistories)
	var mu sync.Mutex
	total := map[string]int{}
	t.Run("histories", func(t *testing.T) {
		for seed := first; seed < first+n; seed++ {
			t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
				t.Parallel()
				h := newLeakHistory(t, uint64(seed))
				h.play()
				defer holding(&mu)()
				for what, count := range h.counts {
					total[what] += count
				}
			})
		}
	})
	t.Log(total)
	for _, what := range []string{"requests", "sub-sessions", "said", "files", "canaries in requests", "canaries said", "canaries in files",
		"files said", "work files", "nights", "harvest requests", "harvested", "task requests", "pairs", "merged", "night undone", "compacted when full"} {
		expect.False(t, total[what] == 0 && n >= leakHistories, "no %s: the test shows nothing", what)
	}
}

var canary = regexp.MustCompile(`canary[0-9]+x`)

// leakRoom is a room as its homeserver has it.
type leakRoom struct {
	id      string
	direct  string   // whose direct chat it is
	members []string // besides the bot
	exposed bool     // a third was there, ever
	said    []leakMessage
	heard   []chat.Quote // not told to the bot yet
}

// leakMessage is a message in a room.
type leakMessage struct {
	in       chat.Message
	outgoing string // the Outgoing.ID, of one of the bot
	text     string
}

// with is the person with whom the room is private.
func (r *leakRoom) with() string {
	if r.exposed || len(r.members) != 1 || r.members[0] != r.direct {
		return ""
	}
	return r.direct
}

// readers returns the room's current readers.
func (r *leakRoom) readers() trust.Readers {
	if with := r.with(); with != "" {
		return trust.Readers("private:" + with)
	}
	return trust.Readers("room:" + r.id)
}

// come lets a person join.
func (r *leakRoom) come(user string) {
	if !slices.Contains(r.members, user) {
		r.members = append(r.members, user)
	}
	r.exposed = r.exposed || len(r.members) > 1 || user != r.direct
}

// leakHistory is a bot, its rooms, and what happened in them.
type leakHistory struct {
	t      *testing.T
	w      *world
	random *rand.Rand
	counts map[string]int
	log    []string

	mu      sync.Mutex
	rooms   []*leakRoom
	readers map[string]map[trust.Readers]bool // of each canary
	jobs    map[string]trust.Readers          // of each sub-session, by the word in its objective
	place   trust.Readers                     // who reads what the model is asked for now
	calls   []string                          // what the model does next
	hold    chan struct{}                     // a sub-session waits for it
	found   []string                          // leaks
	seen    int                               // so many requests are checked
	number  int
	done    chan string // events
	nightly *dream.Dreamer
}

func newLeakHistory(t *testing.T, seed uint64) *leakHistory {
	h := &leakHistory{t: t, random: rand.New(rand.NewPCG(seed, 7)), counts: map[string]int{}, readers: map[string]map[trust.Readers]bool{},
		jobs: map[string]trust.Readers{}, done: make(chan string, 100)}
	backend := "flat_file"
	if h.chance(2) {
		backend = "fts5"
	}
	h.w = newWorldOf(t, t.TempDir(), backend, one(h, []int{16_000, 32_000}))
	h.w.script.reply, h.w.script.hold = h.answer, h.holds
	c := &h.w.cfg
	h.w.who.self, h.w.who.allowed = "@reverie:example.org", func(user string) bool { return user != stranger }
	c.Transport = leakTransport{h.w.room, h}
	h.w.who.directWith = func(_ context.Context, room string) (string, error) {
		defer holding(&h.mu)()
		return h.room(room).with(), nil
	}
	h.w.who.directChat = func(_ context.Context, person string) (string, error) {
		defer holding(&h.mu)()
		for _, r := range h.rooms {
			if r.with() == person {
				return r.id, nil
			}
		}
		return "", nil
	}
	c.SubSessions.Parallel, c.RetryDelay, c.EditDebounce, c.IdleAfter = 2, time.Millisecond, time.Microsecond, time.Millisecond
	c.Events = map[chat.EventKind]Source{chat.ScheduledTask: leakJobs{h}}
	c.Media = media.Open(h.w.dir, 0)
	c.Tools = tool.New(tool.Config{Files: workspace.Open(workspace.Config{Dir: h.w.dir, DB: c.DB}), Memory: c.Memory, Tasks: c.Tasks, Goals: h.w.Manager.goals, Skills: c.Skills, Dir: h.w.dir, Location: time.UTC, Media: c.Media})
	h.w.restart(t)
	h.openNightly()
	people := []string{owner, friend, bob}
	h.rooms = []*leakRoom{{id: "!r1", direct: owner, members: []string{owner}}, {id: "!r2", direct: friend, members: []string{friend}},
		{id: "!r3", members: []string{owner, friend}, exposed: true}, {id: "!r4", direct: people[h.random.IntN(3)]}}
	h.rooms[3].members = []string{h.rooms[3].direct}
	for _, r := range h.rooms {
		if h.chance(2) { // files are written in this mode
			h.w.exec(t, `INSERT INTO room_setting VALUES (?, 'mode', 'developer', ?, 0)`, r.id, owner)
		}
	}
	return h
}

func (h *leakHistory) chance(of int) bool { return h.random.IntN(of) == 0 }

// one is one of some things.
func one[T any](h *leakHistory, of []T) T { return of[h.random.IntN(len(of))] }

// room is the room id; the lock is held, or nothing runs.
func (h *leakHistory) room(id string) *leakRoom {
	for _, r := range h.rooms {
		if r.id == id {
			return r
		}
	}
	return &leakRoom{id: id, exposed: true}
}

// leakTransport passes outgoing messages to a history.
type leakTransport struct {
	*room
	h *leakHistory
}

func (l leakTransport) SendFinal(ctx context.Context, in string, m chat.Outgoing, _ []string,
	also func(context.Context, *sql.Tx) error,
) error {
	if err := store.InTx(ctx, l.db, func(tx *sql.Tx) error { return also(ctx, tx) }); err != nil {
		return err
	}
	return l.Send(ctx, in, m)
}

func (l leakTransport) Send(ctx context.Context, in string, m chat.Outgoing) error {
	l.h.mu.Lock()
	r := l.h.room(in)
	text := m.Text
	for _, o := range m.Options {
		text += " " + o.Text
	}
	if m.File != nil {
		b, err := os.ReadFile(filepath.Join(l.h.w.dir, filepath.FromSlash(m.File.Path)))
		if err != nil {
			l.h.found = append(l.h.found, err.Error())
		}
		l.h.counts["files said"]++
		text += " " + m.File.Name + " " + string(b)
	}
	l.h.counts["said"]++
	l.h.check("said", "said in "+in+" as "+m.ID, text, r.readers())
	if !m.Draft {
		at := time.Now()
		if i := slices.IndexFunc(r.said, func(o leakMessage) bool { return o.outgoing == m.ID }); i >= 0 {
			at = r.said[i].in.At
		}
		r.said = slices.DeleteFunc(r.said, func(o leakMessage) bool { return o.outgoing == m.ID })
		r.said = append(r.said, leakMessage{outgoing: m.ID, text: m.Text, in: chat.Message{Head: chat.Head{Branch: m.Thread, At: at}}})
	}
	l.h.mu.Unlock()
	return l.room.Send(ctx, in, m)
}

// leakJobs is the Source of due tasks.
type leakJobs struct{ h *leakHistory }

func (leakJobs) Wanted(context.Context, string) (bool, error) { return true, nil }

func (l leakJobs) Done(_ context.Context, id, answer string, _ error) error {
	l.h.done <- id + " " + answer
	return nil
}

// check records canaries in text that readers may not read; the lock is held.
func (h *leakHistory) check(kind, where, text string, readers trust.Readers) {
	for _, c := range canary.FindAllString(text, -1) {
		h.counts["canaries "+map[string]string{"said": "said", "requests": "in requests", "files": "in files"}[kind]]++
		if of := h.readers[c]; !of[readers] && !of["shared"] {
			h.found = append(h.found, fmt.Sprintf("%s, which %s read: %s of %v\n    %s",
				where, readers, c, slices.Sorted(maps.Keys(of)), around(text, c)))
		}
	}
}

// around returns the text around a word.
func around(text, word string) string {
	i := strings.Index(text, word)
	return strconv.Quote(text[max(0, i-150):min(len(text), i+100)])
}

// answer is the model: it obeys every order, and tells all that it knows.
func (h *leakHistory) answer(body string) (string, bool) {
	defer holding(&h.mu)()
	knows := canary.FindAllString(body, -1)
	slices.Sort(knows)
	knows = slices.Compact(knows)
	text := "I know of " + strings.Join(knows, " and ") + "."
	if len(knows)%3 == 1 {
		text += " Is it " + knows[0] + "?"
	}
	if h.ofJob(body) != "" || isSummary(body) || len(h.calls) == 0 {
		return text, true
	}
	call := h.calls[0]
	h.calls = h.calls[1:]
	return call, true
}

var jobWord = regexp.MustCompile(`job[0-9]+j`)

// ofJob returns the sub-session that makes a request, by its word; "" = not a sub-session.
func (h *leakHistory) ofJob(body string) string {
	if !strings.Contains(body, "## Objective") {
		return ""
	}
	var a askedFor
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		h.found = append(h.found, err.Error())
	}
	for _, m := range a.Messages {
		if _, objective, ok := strings.Cut(m.Content, "## Objective\n"); ok && m.Role == "user" {
			return jobWord.FindString(objective)
		}
	}
	return ""
}

// holds makes a sub-session wait.
func (h *leakHistory) holds(body string) <-chan struct{} {
	defer holding(&h.mu)()
	if h.hold == nil || h.ofJob(body) == "" {
		return nil
	}
	return h.hold
}

// fresh makes a new canary for the readers of r.
func (h *leakHistory) fresh(r *leakRoom) string {
	h.number++
	c := fmt.Sprintf("canary%dx", h.number)
	h.grant(c, r.readers())
	return c
}

// grant lets readers read the canary c, too.
func (h *leakHistory) grant(c string, readers trust.Readers) {
	defer holding(&h.mu)()
	if h.readers[c] == nil {
		h.readers[c] = map[trust.Readers]bool{}
	}
	h.readers[c][readers] = true
}

// count adds n to the counter of what.
func (h *leakHistory) count(what string, n int) {
	defer holding(&h.mu)()
	h.counts[what] += n
}

// play runs random steps.
func (h *leakHistory) play() {
	for range 12 + h.random.IntN(24) {
		h.step()
		h.checkRequests()
		if len(h.found) > 0 {
			break
		}
	}
	h.release()
	h.checkRequests()
	h.checkFiles()
	h.countCompactions()
	if len(h.found) > 0 {
		h.t.Errorf("%s\nafter\n%s", strings.Join(h.found, "\n"), strings.Join(h.log, "\n"))
	}
}

// checkRequests checks the model's requests since the last call.
func (h *leakHistory) checkRequests() {
	asked := h.w.script.asked()
	defer holding(&h.mu)()
	for _, body := range asked[h.seen:] {
		readers, what := h.place, "requests"
		if job := h.ofJob(body); job != "" {
			readers = h.jobs[job]
			h.counts["sub-sessions"]++
		}
		h.counts[what]++
		h.counts["tool results"] += strings.Count(body, `"role":"tool"`)
		h.check(what, "a request", body, readers)
	}
	h.seen = len(asked)
}

// checkFiles checks who may read the files of memories and skills, and those in work folders.
func (h *leakHistory) checkFiles() {
	defer holding(&h.mu)()
	of := map[string]trust.Readers{}
	all := []trust.Readers{"shared", "private:" + owner, "private:" + friend, "private:" + bob, "private:" + stranger}
	for _, r := range h.rooms {
		all = append(all, trust.Readers("room:"+r.id))
	}
	for _, r := range all {
		of[h.w.cfg.Memory.File(r)], of["work/"+store.FileName(string(r))] = r, r
	}
	for _, person := range []string{owner, friend, bob, stranger} {
		of[profile.RelativePath(person)] = trust.PersonReaders(person)
	}
	for _, folder := range []string{"skills", "memories", "MEMORIES.txt", "work"} {
		_ = filepath.WalkDir(filepath.Join(h.w.dir, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil //nolint:nilerr // there is none
			}
			b, _ := os.ReadFile(path)
			rel, _ := filepath.Rel(h.w.dir, path)
			readers := of[filepath.ToSlash(rel)]
			if name, ok := strings.CutPrefix(filepath.ToSlash(rel), "skills/"); ok {
				readers = skill.Readers(name)
			}
			if name := strings.Split(filepath.ToSlash(rel), "/"); name[0] == "work" {
				readers = of["work/"+name[1]]
				h.counts["work files"]++
			}
			h.counts["files"]++
			h.check("files", rel, string(b), readers)
			return nil
		})
	}
}

// step runs one random step.
func (h *leakHistory) step() {
	steps := []struct {
		weight int
		do     func()
	}{
		{8, h.talks}, {14, h.wants}, {1, h.floods}, {12, h.commands}, {3, h.enters}, {2, h.leaves}, {4, h.changes}, {3, h.replies},
		{1, h.upgrades}, {3, h.votes}, {1, h.restarts}, {3, h.fallsDue}, {2, h.shares}, {2, h.hears}, {2, h.release}, {1, h.rests}, {3, h.nights},
	}
	n := 0
	for _, s := range steps {
		n += s.weight
	}
	n = h.random.IntN(n)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			s.do()
			return
		}
	}
}

func (h *leakHistory) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf("%2d ", len(h.log)+1)+fmt.Sprintf(format, args...))
}

// speaker picks a person who may talk to the bot, and a room; r is nil if there is no such person.
func (h *leakHistory) speaker() (r *leakRoom, who string) {
	r = one(h, h.rooms)
	may := slices.DeleteFunc(slices.Clone(r.members), func(user string) bool { return user == stranger })
	if len(may) == 0 {
		return nil, ""
	}
	return r, one(h, may)
}

// says delivers a message, or the change that more makes of it, and waits until it is handled.
func (h *leakHistory) says(r *leakRoom, who, text string, more func(*chat.Message) chat.Inbound) {
	h.number++
	in := chat.Message{Head: chat.Head{ID: fmt.Sprintf("$m%d", h.number), Room: r.id, Sender: who, Private: r.with() == who, At: time.Now()}, Text: text}
	if !in.Private && !command.Is(text) {
		in.Quotes, r.heard = r.heard, nil
	}
	if h.chance(4) && len(r.said) > 0 { // in a thread
		if root := one(h, r.said); root.in.ID != "" && root.in.Branch == "" {
			in.Thread, in.Branch = root.in.ID, root.in.ID
			in.Quotes = append([]chat.Quote{root.quote(chat.QuoteThread)}, in.Quotes...)
		}
	}
	if more != nil {
		if change := more(&in); change != nil {
			h.delivers(r, change)
			return
		}
	}
	h.delivers(r, in)
	h.mu.Lock()
	r.said = append(r.said, leakMessage{in: in, text: in.Text})
	h.mu.Unlock()
}

// delivers delivers a message and waits until it is handled.
func (h *leakHistory) delivers(r *leakRoom, in chat.Inbound) {
	h.note("in %s (%s): %T %+v, calls %q", r.id, r.readers(), in, in, h.calls)
	h.mu.Lock()
	h.place = r.readers()
	h.mu.Unlock()
	expect.OK(h.t, h.w.Deliver(h.t.Context(), in))
	wait := time.After(testTimeout)
	for {
		select {
		case got := <-h.w.room.handled:
			if got == chat.HeadOf(in).ID {
				h.settles()
				return
			}
		case <-wait:
			h.t.Fatalf("%s is not handled after\n%s", chat.HeadOf(in).ID, strings.Join(h.log, "\n"))
		}
	}
}

// settles waits for the sub-sessions, unless they are held.
func (h *leakHistory) settles() {
	h.mu.Lock()
	held := h.hold != nil
	h.calls = nil
	h.mu.Unlock()
	if !held {
		waitUntil(h.t, "sub-sessions are told of after\n"+strings.Join(h.log, "\n"), h.w.allTold(h.t))
	}
}

// quote makes a quote of m.
func (m leakMessage) quote(why chat.QuoteKind) chat.Quote {
	q := chat.Quote{ID: cmp.Or(m.in.ID, "$out-"+m.outgoing), Sender: m.in.Sender, Text: m.text, At: m.in.At, Why: why}
	if m.outgoing != "" {
		q.OutgoingID, q.Sender = m.outgoing, "@reverie:example.org"
	}
	return q
}
