package session

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/test/expect"
)

// newWindow is a world whose model has that window.
func newWindow(t *testing.T, dir string, window int, answers ...string) *world {
	t.Helper()
	return newWorldOf(t, dir, "flat_file", window, answers...)
}

// isSummary reports whether a request asks for a summary.
func isSummary(body string) bool { return strings.Contains(body, "takes the place of the older part") }

// sent returns the messages of a request.
func sent(t testing.TB, body string) []llm.Message {
	t.Helper()
	var req struct {
		Messages []struct {
			Role, Content string
			ToolCallID    string `json:"tool_call_id"`
			ToolCalls     []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	expect.OK(t, json.Unmarshal([]byte(body), &req))
	var out []llm.Message
	for _, m := range req.Messages {
		msg := llm.Message{Role: llm.Role(m.Role), Content: m.Content, ToolCallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			msg.ToolCalls = append(msg.ToolCalls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		out = append(out, msg)
	}
	return out
}

// summarising answers summary requests with f, which gets the text to summarise, and other requests with a long answer.
func (w *world) summarising(t testing.TB, f func(text string) string) *int {
	n := 0
	w.script.reply = func(body string) (string, bool) {
		if isSummary(body) {
			n++
			m := sent(t, body)
			return f(m[len(m)-1].Content), true
		}
		return "", false
	}
	w.script.forever = "Understood. " + strings.Repeat("I take note of it and will come back to it when it matters. ", 3)
	return &n
}

// chatter sends n irrelevant messages.
func (w *world) chatter(t *testing.T, name string, n int) {
	t.Helper()
	for i := range n {
		got := w.say(t, fmt.Sprintf("$%s%d", name, i), strings.Repeat("we go on talking about the weather and the garden, ", 4))
		if got.Notice || got.Text == "" {
			t.Fatalf("%s %d is answered with %+v", name, i, got)
		}
	}
}

// untilCompacted sends messages until n compactions have happened.
func (w *world) untilCompacted(t *testing.T, n int) {
	t.Helper()
	for len(w.compactions(t)) < n {
		w.chatter(t, fmt.Sprint("c", len(w.script.asked())), 1)
	}
}

// lastPrompt returns the newest request for an answer as text.
func (w *world) lastPrompt(t testing.TB) string {
	t.Helper()
	asked := w.script.asked()
	for i := len(asked) - 1; i >= 0; i-- {
		if isSummary(asked[i]) {
			continue
		}
		var b strings.Builder
		for _, m := range sent(t, asked[i]) {
			b.WriteString(m.Content + "\n")
		}
		return b.String()
	}
	return ""
}

// compactions returns the levels of all compactions.
func (w *world) compactions(t testing.TB) []string {
	t.Helper()
	return w.column(t, `SELECT level FROM compaction ORDER BY id`)
}

// TestCompaction checks a conversation in a small window.
func TestCompaction(t *testing.T) {
	t.Run("verbatim identifiers survive", func(t *testing.T) {
		w := newWindow(t, t.TempDir(), 6000)
		w.summarising(t, func(string) string { return "They talked about this and that, at some length." })
		w.say(t, "$0", "The door code is 4711-K, see https://example.org/flat?id=9 and /home/ada/flat.txt for more.")
		w.say(t, "$1", "DECISION_LOCKED: we paint it green | because we like green")
		w.untilCompacted(t, 3)
		expect.Has(t, w.lastPrompt(t), "4711-K", "https://example.org/flat?id=9", "/home/ada/flat.txt", "we paint it green")
		for _, body := range w.script.asked() {
			if isSummary(body) { // a small model writes no headings
				expect.Lacks(t, sent(t, body)[0].Content, "Use these headings")
			}
		}
	})
	for name, answer := range map[string]string{"failing": "500", "empty": "", "cut": "cut off in the middle of a summary that they", "garbled": "<html><body>Bad Gateway, sorry about that</body></html>", "calls a tool": `{"entry":"x"}`} {
		t.Run("a summariser that is "+name+" falls back", func(t *testing.T) {
			w := newWindow(t, t.TempDir(), 6000)
			w.summarising(t, func(string) string { return answer })
			w.say(t, "$0", "The door code is 4711-K.")
			w.say(t, "$1", "DECISION_LOCKED: we paint it green | because we like green")
			w.untilCompacted(t, 2)
			expect.Equal(t, strings.Join(w.compactions(t), " "), "extract extract")
			if got := w.lastPrompt(t); !strings.Contains(got, "ada: The door code is 4711-K.") && !strings.Contains(got, "owner: The door code is 4711-K.") || !strings.Contains(got, "Said since, in short") {
				t.Errorf("prompt: %s", got)
			}
			expect.Has(t, w.lastPrompt(t), "we paint it green")
			notice(t, w.say(t, "$s", "!summary"), "4711-K")
		})
	}
}

// compacted returns the room's current compaction.
func (w *world) compacted(t testing.TB) history.Compaction {
	t.Helper()
	return expect.Must(w.cfg.History.LatestCompaction(t.Context(), "!dm"))(t)
}

// TestSummaryOfAGoal: who writes the summary sees the goal with its steps and files, and the current task.
func TestSummaryOfAGoal(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	w.summarising(t, func(string) string { return "They ported the parser, and the tests are still in the way." })
	w.say(t, "$0", "!goal new Port the parser")
	for step, status := range map[string]goal.CheckpointStatus{"Read the old one": goal.Done, "Write the new one": goal.InProgress} {
		expect.Must(w.Manager.goals.SetCheckpoint(t.Context(), inDM, "", step, status))(t)
	}
	expect.Must(w.Manager.goals.RecordArtifact(t.Context(), inDM, "", goal.Artifact{Path: "work/parser.go", Action: "created"}))(t)
	w.untilCompacted(t, 1)
	for _, body := range w.script.asked() {
		if isSummary(body) {
			expect.Has(t, sent(t, body)[0].Content, "CURRENT GOAL: Port the parser", "Read the old one", "work/parser.go", "Current task: Write the new one",
				"Say what was done for it")
		}
	}
	expect.Equal(t, w.compacted(t).Integrity, inDM.Label().Integrity)
}

// TestRecoveredNote: the first message after a summary warns the model about it, once.
func TestRecoveredNote(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	w.summarising(t, func(string) string { return "They talked about the weather and the garden." })
	told := func() int { return strings.Count(w.lastPrompt(t), "Older messages were just replaced by a summary") }
	w.chatter(t, "a", 1)
	expect.Equal(t, told(), 0)
	w.untilCompacted(t, 1)
	expect.Equal(t, told(), 1)
	w.chatter(t, "b", 2)
	if n := told(); n != 1 { // it stays where it was said, and is not said again
		t.Errorf("told %d times two messages later", n)
	}
}

// checkReachable asks for each of sixty facts in other words; the request must hold the answer without a tool call.
func (w *world) checkReachable(t *testing.T) {
	t.Helper()
	there := 0
	var lost []int
	for i := range 60 {
		w.say(t, fmt.Sprint("$asked", i), question(i))
		if strings.Contains(w.lastPrompt(t), code(i)) {
			there++
		} else {
			lost = append(lost, i)
		}
	}
	t.Logf("%d of 60 facts reach the model when they are asked for; not %v", there, lost)
	expect.False(t, there < 57, "%d of 60 facts reach the model when they are asked for; not %v", there, lost)
}

func question(i int) string {
	things := []string{"the shelf down in the cellar", "my train ticket", "the bicycle key", "the library book", "the office's form", "that pump part"}
	return fmt.Sprintf("What was the mark on %s again, the one with number %d?", things[i%len(things)], i)
}

// TestRecallThroughCompaction: sixty facts in four hundred turns, in small windows, with summaries that drop three lines in ten.
func TestRecallThroughCompaction(t *testing.T) {
	if testing.Short() {
		t.Skip("a long conversation")
	}
	for _, run := range []struct {
		window  int
		backend string  // with flat_file nothing is recalled: what the prompt lacks takes a search by the model
		least   int     // facts of sixty that the prompt has at the end
		reuse   float64 // mean share of a request that was in the one before, but for compactions; what is recalled fills a small window soon
	}{{4096, "flat_file", 25, 0.98}, {8192, "flat_file", 55, 0.98}, {16384, "flat_file", 60, 0.98},
		{4096, "fts5", 25, 0.90}, {16384, "fts5", 60, 0.98}} {
		t.Run(fmt.Sprint(run.window, " ", run.backend), func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, t.TempDir(), run.backend, run.window)
			begun := w.countEpochs(t)
			asked := w.summarising(t, sevenInTen())
			w.say(t, "$goal", "!goal new build the greenhouse before the frost")
			var last []llm.Message
			var shares []float64
			epochs := 0
			for i := range 400 {
				text := fmt.Sprintf("Turn %d: we go on talking about the garden, and what to plant where, and when.", i)
				if i%6 == 3 && i/6 < 60 {
					text = fact(i/6) + " But that only by the way."
				}
				if what := lockedAt[i]; what != "" {
					text = "DECISION_LOCKED: " + what + " | everybody likes it"
				}
				before := len(w.compactions(t))
				if got := w.say(t, fmt.Sprintf("$%d", i), text); got.Notice || got.Text == "" {
					t.Fatalf("turn %d: %+v", i, got)
				}
				now := sent(t, w.lastAsked())
				if len(w.compactions(t)) > before {
					epochs++
				} else if last != nil {
					shares = append(shares, repeated(last, now))
				}
				last = now
			}
			slices.Sort(shares)
			mean := 0.0
			for _, s := range shares {
				mean += s / float64(len(shares))
			}
			there := 0
			for i := range 60 {
				if strings.Contains(w.lastPrompt(t), code(i)) {
					there++
				}
			}
			t.Logf("window %d: %d of 60 facts in the prompt after %d compactions (%d asked of a model); reuse between compactions: mean %.4f, least %.4f",
				run.window, there, len(w.compactions(t)), *asked, mean, shares[0])
			expect.False(t, there < run.least, "%d facts are left, of 60", there)
			for _, want := range append(slices.Sorted(maps.Values(lockedAt)), "build the greenhouse before the frost") {
				expect.False(t, !strings.Contains(w.lastPrompt(t), want), "%q is lost", want)
			}
			expect.False(t, mean < run.reuse, "between compactions only %.4f of a request are repeated", mean)
			n := len(w.compactions(t))
			expect.False(t, run.window == 16384 && n > 400/25, "%d compactions in 400 turns", n)
			if run.window == 16384 && begun("%") > 400/25 { // whatever a model reads anew, compaction or not
				t.Errorf("%d epochs in 400 turns", begun("%"))
			}
			if run.backend == "flat_file" && begun("%") != epochs+1 { // each begins one epoch, once
				t.Errorf("%d epochs began for %d compactions", begun("%"), epochs)
			}
			if run.backend == "fts5" {
				w.checkReachable(t)
			}
		})
	}
}

// repeated returns the share of the request last that is a prefix of now.
func repeated(last, now []llm.Message) float64 {
	same, all := 0, 0
	differs := false
	for i, m := range last {
		all += len(m.Content)
		for n := range m.Content {
			differs = differs || i >= len(now) || n >= len(now[i].Content) || m.Content[n] != now[i].Content[n]
			if !differs {
				same++
			}
		}
	}
	return float64(same) / float64(all)
}

// countEpochs returns a counter of epochs started since, by reason.
func (w *world) countEpochs(t *testing.T) func(like string) int {
	t.Helper()
	expect.Must(w.cfg.DB.ExecContext(t.Context(), `CREATE TABLE begun (prefix TEXT, at INTEGER, reason TEXT, UNIQUE (prefix, at, reason))`))(t)
	for _, write := range []string{"INSERT", "UPDATE"} {
		expect.Must(w.cfg.DB.ExecContext(t.Context(), `CREATE TRIGGER begins_by_`+write+` AFTER `+write+` ON prompt_epoch
			BEGIN INSERT INTO begun VALUES (new.prefix, new.started_at, new.reason) ON CONFLICT DO NOTHING; END`))(t)
	}
	return func(like string) int { return value[int](t, w, `SELECT count(*) FROM begun WHERE reason LIKE ?`, like) }
}

// lockedAt lists the decisions, by turn.
var lockedAt = map[int]string{5: "the fence stays green", 77: "the pond is filled in", 200: "nobody waters at noon", 322: "the old pear tree stays"}

func code(i int) string { return fmt.Sprintf("K%d-%03d", i, (i*7919)%1000) }

func fact(i int) string {
	things := []string{"shelf in the cellar", "ticket for the train", "key of the bicycle", "book from the library", "form for the office", "part for the pump"}
	return fmt.Sprintf("The %s number %d has the mark %s.", things[i%len(things)], i, code(i))
}

// sevenInTen summarises with seven of ten lines, without the chatter, up to the allowed length.
func sevenInTen() func(text string) string {
	n := 0
	return func(text string) string { n++; return sevenOf(text, n) }
}

func sevenOf(text string, round int) string {
	words := 60                                                                            // of the shortest summary that is asked for; small enough for every window here
	out := []string{fmt.Sprintf("They talk about a garden, of late about bed %d.", round)} // new every time: a summary that only repeats is refused
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if _, said, ok := strings.Cut(line, "]: "); ok {
			line = said
		}
		line = strings.TrimPrefix(strings.TrimPrefix(line, "- "), "owner: ")
		n := len(strings.Fields(line))
		h := fnv.New32()
		fmt.Fprint(h, round, line)
		if h.Sum32()%10 < 3 || n < 4 || n > words || strings.HasPrefix(line, "assistant") || strings.HasPrefix(line, "<") || strings.HasSuffix(line, ":") || strings.Contains(line, "garden") {
			continue
		}
		words -= n
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// TestAnyHistoryFits: for any history and window, the request fits, is valid, and has the instructions and the message.
func TestAnyHistoryFits(t *testing.T) {
	w := newWindow(t, t.TempDir(), 8192)
	w.stop() // the test itself is the session
	w.summarising(t, func(string) string { return "They talked about many things, one after the other." })
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		room := fmt.Sprintf("!any%d", n)
		window := rapid.IntRange(3600, 40_000).Draw(rt, "window")               // tools and an answer take some 1,600 of it
		dense := rapid.SampledFrom([]float64{1, 0.7, 1.5, 3}).Draw(rt, "dense") // tokens that the server counts for one by estimate
		window = int(float64(window) * max(1, dense))
		m := withWindow(t, w, window)
		s := newSession(m, history.Timeline(room))
		expect.Must(w.cfg.DB.ExecContext(t.Context(), `INSERT OR REPLACE INTO token_ratio (model, factor, answers, at) VALUES ('local', ?, 1, 0)`, dense))(rt)
		in := chat.Message{Head: chat.Head{ID: fmt.Sprintf("$%d", n), Room: room, Sender: owner, Private: true}}
		expect.OK(rt, m.remember(t.Context(), in.Head))
		newest := fill(rt, m, room, in.ID)
		expect.Must(command.Run(t.Context(), s.newCommandCall(in), "goal", "new build the greenhouse"))(rt)
		p, _, err := (&turn{Session: s, in: item{Message: in}}).fittingPrompt(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		expect.OK(rt, m.cfg.Prompt.Commit(t.Context(), p))
		if counted := int(float64(p.Report.Total) * dense); counted > window-500 || p.Report.History.LeftOut > 0 {
			rt.Fatalf("%d tokens are sent and %d messages left out, of a window of %d", counted, p.Report.History.LeftOut, window)
		}
		msgs := p.Messages()
		if msgs[0].Role != llm.System || !strings.Contains(msgs[0].Content, "You are Reverie") || !strings.Contains(msgs[0].Content, "CURRENT GOAL: build the greenhouse") {
			rt.Fatalf("no instructions, or no goal: %.300s", msgs[0].Content)
		}
		checkRequest(rt, msgs[1:])
		if !slices.ContainsFunc(msgs, func(m llm.Message) bool { return m.Role == llm.User && strings.Contains(m.Content, newest) }) {
			rt.Fatalf("the newest message %q is not sent", newest)
		}
	})
}

// withWindow is the world's manager with a model of another window.
func withWindow(t *testing.T, w *world, window int) *Manager {
	t.Helper()
	cfg := w.cfg
	cfg.Models = modelsOf(t, chatWithLocal, served(t, "local", window, w.script.ServeHTTP))
	return New(cfg)
}

// fill stores a random history that ends with a question, and returns the beginning of the newest person's message.
func fill(t *rapid.T, m *Manager, room, id string) (newest string) {
	size := rapid.SampledFrom([]int{1, 10, 100, 1000, 20_000})
	calls, said := 0, 0
	add := func(msg history.Message) {
		msg.Room, msg.At = history.Timeline(room), time.Now()
		expect.OK(t, m.cfg.History.Append(t.Context(), &msg))
	}
	text := func(name string) string { return name + strings.Repeat(" word", size.Draw(t, name)) }
	turns := rapid.IntRange(1, 8).Draw(t, "turns")
	for turn := range turns {
		said++
		newest = fmt.Sprintf("question %d.", said)
		event := fmt.Sprintf("%s-%d", id, said)
		if turn == turns-1 {
			event = id
		}
		add(history.Message{Role: llm.User, Sender: owner, EventID: event, Text: text(newest), Header: "[Sat 2026-11-21 12:00 UTC]"})
		for range rapid.IntRange(0, 4).Draw(t, "rounds") {
			call := history.Message{Role: llm.Assistant}
			for range rapid.IntRange(1, 3).Draw(t, "calls") {
				calls++
				call.Calls = append(call.Calls, llm.ToolCall{ID: fmt.Sprintf("c%d", calls), Name: "read_file", Arguments: `{"path":"x"}`})
			}
			add(call)
			for _, c := range call.Calls {
				add(history.Message{Role: llm.Tool, CallID: c.ID, Text: text("result")})
			}
		}
		if turn < turns-1 {
			add(history.Message{Role: llm.Assistant, Text: "answer" + strings.Repeat(" word", rapid.IntRange(0, 100).Draw(t, "answer"))})
		}
	}
	return newest
}

// checkRequest fails unless a chat API would accept the messages.
func checkRequest(t *rapid.T, all []llm.Message) {
	open := map[string]bool{}
	for i, m := range all {
		if i == 0 && m.Role != llm.User || m.Role == llm.System {
			t.Fatalf("message %d is of the %s", i, m.Role)
		}
		if m.Role == llm.Tool {
			if !open[m.ToolCallID] {
				t.Fatalf("the result of %s stands without its call", m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 || i > 0 && m.Role == llm.Assistant && all[i-1].Role == llm.Assistant {
			t.Fatalf("message %d of the %s comes too early", i, m.Role)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		t.Fatal("a call has no result")
	}
}
