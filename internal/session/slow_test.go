package session

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

// testTimeout is far above what any of these tests needs.
const testTimeout = 30 * time.Second

// typist is a room that records typing ("on", "off") and drafts.
type typist struct {
	*room
	mu    sync.Mutex
	seen  []string
	draft []chat.Outgoing
}

func (r *typist) ShowTyping(_ context.Context, room string, on bool) {
	defer holding(&r.mu)()
	r.seen = append(r.seen, fmt.Sprint(room, " typing ", on))
}

func (r *typist) Send(ctx context.Context, room string, m chat.Outgoing) error {
	if m.Draft {
		r.mu.Lock()
		r.seen, r.draft = append(r.seen, room+" draft "+m.Text), append(r.draft, m)
		r.mu.Unlock()
	}
	return r.room.Send(ctx, room, m)
}

func (r *typist) drafts() []chat.Outgoing {
	defer holding(&r.mu)()
	return slices.Clone(r.draft)
}

func (r *typist) shown() string {
	defer holding(&r.mu)()
	return strings.Join(r.seen, "\n")
}

// modelled is a world with a typist whose model is the handler f.
func modelled(t *testing.T, f http.HandlerFunc, timeout time.Duration) (*world, *typist) {
	t.Helper()
	w := newWorld(t, t.TempDir())
	local := served(t, "local", 16000, f)
	local.Timeout = timeout
	t.Cleanup(w.stop) // first: the server waits for its requests
	models := modelsOf(t, chatWithLocal, local)
	r := &typist{room: w.room}
	w.cfg.Models, w.cfg.Transport, w.cfg.ProgressAfter, w.cfg.RetryDelay = models, r, time.Millisecond, 5*time.Millisecond
	return w, r
}

// stuckOn answers, but hangs on questions with word until release or the end of the request.
func stuckOn(word string, asked chan<- struct{}, release <-chan struct{}) http.HandlerFunc {
	fine := &script{forever: "fine"}
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), word) {
			select {
			case asked <- struct{}{}:
			default:
			}
			select {
			case <-release:
			case <-r.Context().Done():
				return
			}
		}
		fine.ServeHTTP(w, r)
	}
}

// !stop cancels the running turn at once, ahead of waiting messages.
// Holds F46, M9.
func TestStopCommand(t *testing.T) {
	asked := make(chan struct{}, 1)
	w, r := modelled(t, stuckOn("for ever", asked, nil), 0)
	in := func(id, text string) {
		t.Helper()
		expect.OK(t, w.Deliver(t.Context(), chat.Message{Head: chat.Head{ID: id, Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Text: text}))
	}
	in("$1", "think for ever")
	<-asked
	in("$2", "!status")
	in("$3", "!stop")
	for _, want := range []string{"$1", "$3", "$2"} {
		select {
		case got := <-w.room.handled:
			expect.Equal(t, got, want)
		case <-time.After(testTimeout):
			t.Fatalf("%s is not handled", want)
		}
	}
	notice(t, w.room.said("$1"), "I stopped working on this")
	got := w.room.said("$3")
	expect.False(t, !got.Notice || got.Text != "Stopped.", "!stop got %+v", got)
	expect.False(t, !strings.HasSuffix(r.shown(), "typing false"), "shown: %s", r.shown())
	expect.Has(t, w.say(t, "$4", "!stop").Text, "Nothing to stop")
}

// For every failure of the model, the person gets one sentence, and the next message is answered.
// Holds F46.
func TestModelFails(t *testing.T) {
	events := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, body)
		}
	}
	tool := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"append_memory","arguments":"{\"entry\":\"x\"}"}}]}}]}` +
		"\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
	for _, c := range []struct {
		name, want string
		fault      http.HandlerFunc
		timeout    time.Duration
	}{
		{"down", "language model", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0},
		{"never answers", "took too long", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, 50 * time.Millisecond},
		{"empty", "empty answer", events("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"), 0},
		{"nothing at all", "empty answer", events("data: [DONE]\n\n"), 0},
		{"only tool calls", "without giving an answer", events(tool), 0},
		{"a web page", "language model", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello</html>") }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			fine := &script{forever: "fine"}
			w, r := modelled(t, func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				if strings.Contains(string(body), "work again") {
					fine.ServeHTTP(rw, r)
					return
				}
				c.fault(rw, r)
			}, c.timeout)
			if got := w.say(t, "$1", "hello"); !got.Notice || !strings.Contains(got.Text, c.want) || strings.Contains(got.Text, "html") {
				t.Errorf("got %+v, want something about %q", got, c.want)
			}
			expect.False(t, !strings.HasSuffix(r.shown(), "typing false"), "still typing: %s", r.shown())
			answers(t, w.say(t, "$2", "work again"), "fine")
		})
	}
}

// While another program locks the database, a message waits; it is answered afterwards.
// Holds F45.
func TestDatabaseHeld(t *testing.T) {
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprintf("early %v", early), func(t *testing.T) {
			asked, release := make(chan struct{}, 1), make(chan struct{})
			w, _ := modelled(t, stuckOn("hello", asked, release), 0)
			var log safeBuffer
			w.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			expect.Must(w.cfg.DB.Exec(`PRAGMA busy_timeout = 5`))(t)
			other := expect.Must(storetest.Open(t, filepath.Join(w.dir, "bot.db")))(t)
			defer other.Close()
			in := chat.Message{Head: chat.Head{ID: "$1", Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Text: "hello"}
			if !early {
				expect.OK(t, w.Deliver(t.Context(), in))
				<-asked
			}
			tx, err := other.BeginTx(t.Context(), nil) // takes the write lock
			expect.OK(t, err)
			close(release)
			if early {
				expect.OK(t, w.Deliver(t.Context(), in))
			}
			waitUntil(t, "something fails, else the test tests nothing", func() bool { return strings.Count(log.String(), "cannot be stored; trying again") >= 2 })
			expect.Equal(t, w.room.count(), 0)
			expect.OK(t, tx.Rollback())
			select {
			case id := <-w.room.handled:
				if got := w.room.said(id); id != "$1" || got.Text != "fine" || got.Notice {
					t.Errorf("%s: %+v", id, got)
				}
			case <-time.After(testTimeout):
				t.Fatal("not answered")
			}
		})
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	defer holding(&b.mu)()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	defer holding(&b.mu)()
	return b.b.String()
}

// TestLoopDetector: it detects bots, and does not take people for bots.
// Holds F37, M38.
func TestLoopDetector(t *testing.T) {
	const work = 3 * time.Second // an answer takes so long
	for _, c := range []struct {
		name     string
		most     int
		gap      time.Duration // after our last answer
		pause    int           // a pause after so many; 0 = never
		messages int
		stops    int // at this message; 0 = never
	}{
		{"fast loop", maxRunInGroup, time.Second / 2, 0, 60, maxRunInGroup + 1},
		{"loop in a direct chat", maxRunInDirect, time.Second, 0, 300, maxRunInDirect + 1},
		{"a person talks", maxRunInGroup, 25 * time.Second, 15, 200, 0},
		{"a person talks for long, alone", maxRunInDirect, 4 * time.Second, 90, 400, 0},
	} {
		p, now, stopped := &loopDetector{}, time.Unix(1_800_000_000, 0), 0
		for i := range c.messages {
			now = now.Add(c.gap)
			if c.pause > 0 && i%c.pause == 0 {
				now = now.Add(runGap)
			}
			answer, stops := p.count(fmt.Sprint(i), now, c.most)
			if again, _ := p.count(fmt.Sprint(i), now.Add(time.Hour), c.most); again != answer {
				t.Fatalf("%s: message %d is answered %v, and tried again, %v", c.name, i, answer, again)
			}
			if stops {
				stopped = i + 1
			}
			if want := c.stops == 0 || i+1 < c.stops; answer != want {
				t.Fatalf("%s: message %d is answered: %v", c.name, i+1, answer)
			}
			if answer {
				now = now.Add(work)
				p.lastAt = now
			}
		}
		expect.False(t, stopped != c.stops, "%s: stops at %d, want %d", c.name, stopped, c.stops)
		answer, _ := p.count("later", now.Add(runGap), c.most)
		expect.False(t, !answer, "%s: a pause does not end it", c.name)
	}
}

// TestBotLoopStops: a bot gets no more answers and the room is told once; commands and others are answered, and !retry resumes.
// Holds F37, M38.
func TestBotLoopStops(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), "flat_file", 16_000)
	w.inGroup()
	n := 0
	say := func(from, text string) chat.Outgoing {
		t.Helper()
		n++
		return w.deliver(t, chat.Message{Head: chat.Head{ID: fmt.Sprint("$", n), Room: "!group", Sender: from, At: time.Now()}, Text: text})
	}
	for range maxRunInGroup {
		expect.Equal(t, say(friend, "hello").Text, "fine")
	}
	told := say(friend, "hello")
	if asked := len(w.script.asked()); asked != maxRunInGroup || !told.Notice || !strings.Contains(told.Text, friend) || !strings.Contains(told.Text, "!retry") {
		t.Errorf("after %d answers the room reads %+v", asked, told)
	}
	again := say(friend, "hello?")
	expect.False(t, again.Text != "" || len(w.script.asked()) != maxRunInGroup, "told twice: %+v", again)
	expect.Has(t, say(friend, "!stop").Text, "Nothing to stop")
	for range maxRunInGroup + 2 { // an owner is a person
		expect.Equal(t, say(owner, "the very same words again").Text, "fine")
	}
	expect.Equal(t, say(friend, "hello?").Text, "")
	expect.Equal(t, say(friend, "!retry").Text, "fine")
	expect.Equal(t, say(friend, "thanks").Text, "fine")
}
