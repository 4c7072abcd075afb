package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reverie/cmd/bot/config"
	"reverie/internal/llm"
	"reverie/internal/llm/rehearsal"
	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

const (
	dayURL      = "http://matrix.test"
	profileRate = 256 // bytes; a smaller one finds smaller leaks, and takes longer
)

func itoa(n int) string { return strconv.Itoa(n) }

// day is a bot as in `bot run`, people with their own clients, and a homeserver with failures. All
// run in a synctest bubble, whose clock advances when all goroutines wait.
type day struct {
	t      *testing.T
	home   *matrixtest.Server
	link   *link
	model  *link
	bot    string
	parts  *bot
	client *matrix.Client
	began  time.Time
	people []*human
	ends   []func() // what stops its parts, the last one first
}

// end stops the bot and its people. The end of the test does it, too.
func (d *day) end() {
	for ; len(d.ends) > 0; d.ends = d.ends[:len(d.ends)-1] {
		d.ends[len(d.ends)-1]()
	}
}

// TestDay simulates 24 hours of a bot.
// Holds F22.
func TestDay(t *testing.T) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = profileRate
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		d := newDay(t)
		d.live()
	})
	t.Logf("a day took %s", time.Since(began).Round(time.Millisecond))
}

func newDay(t *testing.T) *day {
	return newDayWith(t, echoModel{}, smallModel, func(*config.Config) {})
}

var smallModel = llm.ModelConfig{Window: 4096, MaxOutput: 512}

// newDayWith is newDay with another model, of the given size, and a changed configuration.
func newDayWith(t *testing.T, model http.Handler, size llm.ModelConfig, change func(*config.Config)) *day {
	d := &day{t: t, home: matrixtest.New()}
	t.Cleanup(d.end)
	d.link = newLink(d.home)
	d.bot = d.home.Account("reverie", "reverie-secret")
	cfg := &config.Config{
		Name: "Reverie", Data: filepath.Join(t.TempDir(), "data"), Loaded: config.Loaded{Zone: time.UTC},
		Prompt: config.Prompt{Layout: "stable"}, Memory: config.Memory{Backend: "flat_file"}, Harvest: config.Harvest{Enabled: true, Messages: 20, Idle: 15 * time.Minute}, Seed: config.Seed{Language: "en"},
		Matrix: &config.Matrix{Homeserver: dayURL, User: d.bot, Password: "reverie-secret", Owners: []string{"@ann:" + d.home.Name}, Allow: []string{"*:" + d.home.Name}},
	}
	change(cfg)
	var err error
	if d.parts, err = openBot(t.Context(), cfg, slog.New(slog.DiscardHandler), true); err != nil {
		t.Fatal(err)
	}
	d.ends = append(d.ends, d.parts.close)
	d.model = newLink(model)
	size.Name, size.BaseURL, size.Model = "m", "http://model.test/v1", rehearsal.ModelName
	d.parts.models = llm.New(llm.Config{HTTP: d.model, Meter: d.parts.counted.Meter(d.parts.usage), Models: []llm.ModelConfig{size}})
	mc := d.parts.matrixConfig()
	mc.HTTP = d.link
	if d.client, err = matrix.Open(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := d.parts.serve(ctx, d.client); err != nil {
			t.Errorf("the bot stopped: %v", err)
		}
	})
	d.ends = append(d.ends, func() { cancel(); running.Wait() })
	return d
}

// happening is an event at a time of the day.
type happening struct {
	at time.Duration
	do func()
}

func at(hour, minute int) time.Duration {
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
}

func (d *day) live() {
	ann, ben, cat := d.person("ann"), d.person("ben"), d.person("cat")
	d.people = []*human{ann, ben, cat}
	hers := d.room(ann, peer.Room{Name: "Ann", Direct: true, Encrypted: true, Invite: []string{d.bot}})
	his := d.rotating(ben, 2*time.Hour)
	group := d.room(ann, peer.Room{Name: "All", Encrypted: true, Invite: []string{d.bot, ben.UserID()}})
	expect.OK(d.t, ben.Join(d.t.Context(), group))

	busy := []int{0, 0, 0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23} // the others are idle
	random := rand.New(rand.NewPCG(3, 4))
	ann.plan = plan(random, "ann", busy, 28, hers, group)
	ben.plan = plan(random, "ben", busy, 26, his, group)
	cat.plan = plan(random, "cat", []int{6, 7, 8}, 4, "", group)
	for i := range cat.plan {
		cat.plan[i].room, cat.plan[i].group = group, true
	}
	d.began = time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	var talking sync.WaitGroup
	for _, h := range d.people {
		talking.Go(func() { h.talk(ctx, d.t, d.began) })
	}
	defer talking.Wait()
	defer cancel()

	var first, last figures
	happenings := append(d.troubles(),
		happening{at(5, 10), func() {
			cat.came = d.home.SetState(ann.UserID(), group, "m.room.member", cat.UserID(), map[string]any{"membership": "invite"})
			expect.OK(d.t, cat.Join(ctx, group))
		}},
		happening{at(9, 10), func() { expect.OK(d.t, cat.Leave(ctx, group)) }},
		happening{at(0, 59), func() { first = d.measure() }},
		happening{at(23, 59), func() { last = d.measure() }},
	)
	for hour := range 24 {
		happenings = append(happenings, happening{at(hour, 58), func() {
			for _, h := range d.people {
				h.settled(d.t, at(hour, 58))
			}
			d.queues(at(hour, 58))
		}})
	}
	slices.SortStableFunc(happenings, func(a, b happening) int { return int(a.at - b.at) })
	for _, h := range happenings {
		sleepUntil(ctx, d.began.Add(h.at))
		h.do()
	}
	if !ben.told("cannot read this message") {
		d.t.Error("ben was not told that the key of his message is late")
	}
	d.compare(first, last)
	d.rotation(hers, 7*24*time.Hour)
	d.rotation(his, 2*time.Hour)
	d.rotation(group, 7*24*time.Hour, at(5, 10), at(9, 10))
}

func (d *day) room(by *human, r peer.Room) string {
	d.t.Helper()
	id := expect.Must(by.CreateRoom(d.t.Context(), r))(d.t)
	d.joined(by, id)
	return id
}

func (d *day) joined(by *human, room string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Hour)
	defer cancel()
	expect.OK(d.t, by.WaitJoined(ctx, room, d.bot))
}

// rotating creates an encrypted direct room with frequent key rotation.
func (d *day) rotating(by *human, period time.Duration) string {
	d.t.Helper()
	id := d.home.Room(by.UserID(), matrixtest.NewRoom{Name: "Ben", Direct: true})
	d.home.SetState(by.UserID(), id, "m.room.encryption", "", map[string]any{"algorithm": "m.megolm.v1.aes-sha2", "rotation_period_ms": period.Milliseconds()})
	d.home.SetState(by.UserID(), id, "m.room.member", d.bot, map[string]any{"membership": "invite", "is_direct": true})
	d.joined(by, id)
	return id
}

// troubles are the failures of the day. Each must affect at least one request.
func (d *day) troubles() []happening {
	on := func(endpoints ...string) matrixtest.Match { return matrixtest.On(endpoints...).By(d.bot) }
	// during injects a fault for a while and requires that it is hit.
	during := func(start, end time.Duration, match matrixtest.Match, fault matrixtest.Fault) []happening {
		var hook *matrixtest.Hook
		return []happening{{start, func() { hook = d.home.Fault(match, fault) }}, {end, func() {
			hook.Remove()
			if hook.Hits() == 0 {
				d.t.Errorf("what was to go wrong from %s to %s was met by nobody", start, end)
			}
		}}}
	}
	down := func(start, end time.Duration) []happening {
		return []happening{{start, func() { d.link.cut(); d.home.ForgetTransactions() }}, {end, d.link.restore}}
	}
	later := func(delay time.Duration) matrixtest.Fault {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			fmt.Fprint(w, "{}")
			r = r.WithContext(context.Background())
			time.AfterFunc(delay, func() { next.ServeHTTP(httptest.NewRecorder(), r) })
		}
	}
	forget := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		d.home.ForgetTransactions()
		panic(http.ErrAbortHandler)
	}
	bensKeys := matrixtest.Match(func(r *matrixtest.Request) bool {
		return r.User == "@ben:"+d.home.Name && r.Endpoint == "sendToDevice" && strings.Contains(r.Path, "/m.room.encrypted/")
	})
	var logins int
	return slices.Concat(
		down(at(7, 10), at(7, 30)),
		down(at(13, 10), at(13, 11)), // while nobody speaks
		[]happening{
			{at(10, 10), func() { logins = d.home.Count("login"); d.home.RevokeToken(d.bot) }},
			{at(10, 20), func() {
				if n := d.home.Count("login"); n != logins+1 {
					d.t.Errorf("the bot logged in %d times after its token had expired, want once", n-logins)
				}
			}},
		},
		during(at(11, 5), at(11, 20), on("send"), matrixtest.Limit(5*time.Second, 9*time.Second)),
		during(at(12, 5), at(12, 30), on("sync").Times(1), matrixtest.Hang()),
		during(at(14, 0), at(14, 50), bensKeys, later(5*time.Minute)),
		during(at(15, 0), at(15, 50), on("sync"), matrixtest.LimitTimelines(1)),
		during(at(15, 0), at(15, 50), on("sync"), matrixtest.Delay(20*time.Second)),
		during(at(15, 0), at(15, 50), on("messages"), matrixtest.Delay(0)), // the gaps are filled
		during(at(17, 5), at(17, 15), on("sync", "send"), matrixtest.Status(http.StatusBadGateway, "")),
		during(at(18, 0), at(18, 50), on("send").Times(5), forget),
		during(at(18, 0), at(18, 50), on("sync"), matrixtest.Delay(10*time.Second)), // so that the echo comes late
		during(at(19, 5), at(19, 10), on("sync", "send"), matrixtest.HTML()),
		during(at(20, 0), at(20, 50), on("sync"), matrixtest.Duplicate()),
		down(at(21, 10), at(21, 11)), down(at(21, 20), at(21, 21)), down(at(21, 30), at(21, 31)),
	)
}

// figures are the measurements that must not grow.
type figures struct {
	goroutines, files int
	stacks            string
	heap              uint64 // all of it, the people and the homeserver included
	own               int64
	rows              map[string]int
}

// queues checks that no message, answer or key backup is pending.
func (d *day) queues(after time.Duration) {
	for _, q := range []string{
		`SELECT count(*) FROM inbox WHERE state <> 'done' OR text <> '' OR raw <> ''`,
		`SELECT count(*) FROM outbox WHERE state <> 'sent'`,
		`SELECT (SELECT count(*) FROM inbox) - (SELECT count(*) FROM message WHERE role = 'user')`,
		`SELECT (SELECT count(*) FROM outbox WHERE kind = 'text') - (SELECT count(*) FROM message WHERE role = 'assistant')`,
	} {
		var n int
		expect.OK(d.t, d.parts.db.QueryRow(q).Scan(&n))
		expect.Equal(d.t, n, 0, "after %s rows, want none: %s", after, q)
	}
	s := d.client.Status(d.t.Context())
	if s.Problem != "" || time.Since(s.LastSync) > time.Minute || s.Backup == "" || s.BackupWaiting > 0 {
		d.t.Errorf("after %s: %+v", after, s)
	}
}

func (d *day) measure() (f figures) {
	for d.model.busy() { // whether a room is being harvested at this minute is chance
		time.Sleep(time.Second)
	}
	synctest.Wait()
	d.openConnections()
	for range 3 {
		runtime.GC()
	}
	stacks := make([]byte, 4<<20)
	f.stacks = string(stacks[:runtime.Stack(stacks, true)])
	f.goroutines = strings.Count(f.stacks, ", synctest bubble ")
	open, _ := os.ReadDir("/proc/self/fd") // elsewhere than on Linux they are not counted
	for _, fd := range open {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(name, d.parts.cfg.Data) {
			f.files++
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap = m.HeapAlloc
	f.own = own()
	f.rows = d.rows()
	return f
}

// openConnections opens all connections that read; how many a day needs at the same time is chance.
func (d *day) openConnections() {
	for range store.MaxReaders {
		defer expect.Must(d.parts.db.QueryContext(d.t.Context(), `SELECT 1`))(d.t).Close()
	}
}

// rows counts the rows of each table of bot.db.
func (d *day) rows() map[string]int {
	counts := map[string]int{}
	for _, name := range expect.Must(store.Column[string](d.t.Context(), d.parts.db, `SELECT name FROM sqlite_schema WHERE type = 'table'`))(d.t) {
		counts[name] = expect.Must(store.Value[int](d.t.Context(), d.parts.db, `SELECT count(*) FROM "`+name+`"`))(d.t)
	}
	return counts
}

// own is the memory in use of the bot, without people, homeserver and test. The runtime keeps
// descriptors (malg) for the peak number of goroutines; they are counted.
func own() (sum int64) {
	records := make([]runtime.MemProfileRecord, 1<<16)
	n, ok := runtime.MemProfile(records, false)
	if !ok {
		panic("too many places")
	}
next:
	for _, r := range records[:n] {
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var frame runtime.Frame
			frame, more = frames.Next()
			for _, others := range []string{"/matrixtest.", "/matrix/peer.", "cmd/bot.(*human)", "cmd/bot.echoModel", "cmd/bot.(*day)", "cmd/bot.own", "runtime.malg"} {
				if strings.Contains(frame.Function, others) {
					continue next
				}
			}
		}
		// The profile samples small allocations rarely and scales them up.
		size := float64(r.InUseBytes()) / float64(max(r.InUseObjects(), 1))
		sum += int64(float64(r.InUseBytes()) / (1 - math.Exp(-size/profileRate)))
	}
	return sum
}

func (f figures) String() string {
	return fmt.Sprintf("%d questions, %d goroutines, %d files, heap %d KiB, of it the bot's %d KiB", f.rows["inbox"], f.goroutines, f.files, f.heap>>10, f.own>>10)
}

// What a message leaves behind is kept on disk: in the history, in the outbox,
// and as an id in the inbox. What may grow in memory is what is kept for each
// room, up to the size of the window, and that was reached in the first hour.
// So nothing is left for a thousand questions but the slack of slices and the
// error of a sampled profile.
const slack = 96 << 10

// kept are the tables that get rows for each message. The one of the crypto
// store is how a message that is played again is told from a new one. A window as
// small as here is full after two dozen messages: then there is one more summary, kept
// with the messages it is of. What was said can be found again: it stands in past_message and in the index; harvest
// says of each message whether it was read for what is worth remembering, and answered
// which reply is to it.
var kept = []string{"message", "inbox", "outbox", "crypto_message_index", "compaction", "harvest",
	"question_reply", "past_message", "index_doc", "index_term", "index_fts_idx", "index_fts_data", "index_fts"}

func (d *day) compare(first, last figures) {
	d.t.Logf("after the first hour: %s", first)
	d.t.Logf("after the last hour:  %s", last)
	if n := last.rows["inbox"] - first.rows["inbox"]; n < 1000 {
		d.t.Errorf("only %d questions from one to the other", n)
	}
	if more := last.own - first.own; more > slack {
		d.t.Errorf("the bot has %d KiB more in memory", more>>10)
	}
	for name, n := range last.rows {
		if more := n - first.rows[name]; more > 50 && !slices.Contains(kept, name) {
			d.t.Errorf("%d rows more in the table %s", more, name)
		}
	}
	if last.goroutines != first.goroutines {
		d.t.Errorf("%d goroutines after the first hour, %d after the last:\n%s\nand after the last:\n%s", first.goroutines, last.goroutines, first.stacks, last.stacks)
	}
	expect.Equal(d.t, last.files, first.files, "open files at the end and after the first hour")
}

// rotation checks all encrypted events of the bot in a room: no key is used for over 100 messages,
// beyond the room's period, or across a change of members.
func (d *day) rotation(room string, period time.Duration, changes ...time.Duration) {
	type use struct {
		n           int
		first, last time.Time
	}
	uses := map[string]*use{}
	most, longest := 0, time.Duration(0)
	for _, s := range d.home.Sends() {
		if s.User != d.bot || s.Room != room || s.Repeat {
			continue
		}
		var c struct {
			Session string `json:"session_id"`
		}
		expect.OK(d.t, json.Unmarshal(s.Content, &c))
		u := uses[c.Session]
		if u == nil {
			u = &use{first: s.At}
			uses[c.Session] = u
		}
		u.n++
		u.last = s.At
		most, longest = max(most, u.n), max(longest, u.last.Sub(u.first))
	}
	d.t.Logf("room %s: %d keys, at most %d messages and %s each", room, len(uses), most, longest.Round(time.Second))
	if len(uses) < 2 || most > 100 || longest > period {
		d.t.Errorf("room %s: the keys do not change as they must", room)
	}
	for _, change := range changes {
		for id, u := range uses {
			if at := d.began.Add(change); u.first.Before(at) && u.last.After(at) {
				d.t.Errorf("room %s: key %s was used before and after the members changed at %s", room, id, change)
			}
		}
	}
}
