package prompt

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"reverie"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/profile"
	"reverie/internal/prompt/section"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const (
	testRoom = "!room:example.org"
	testUser = "@ada:example.org" // the owner: what she is told stands in MEMORIES.txt
)

// world is a data folder, a database and an assembler over them, with a clock
// that moves a second with every message.
type world struct {
	t       testing.TB
	dir     string
	db      *store.DB
	now     time.Time
	zone    *time.Location
	layout  Layout
	room    string
	private bool

	backend   string
	memory    *memory.Store
	tasks     *task.Store
	goals     *goal.Store
	skills    *skill.Library
	history   *history.Store
	assembler *Assembler
	extra     []section.Contributor // of contribute
	log       bytes.Buffer

	tools             []string
	programs          []section.Program
	mode              string
	tier              int
	goal, steps       []string
	pin, summary      string
	markers           bool
	thinking, model   string
	context, persona  string
	instructions      string
	window, maxOutput int
	calls, numbered   int           // tool calls and tasks so far
	compacted         int64         // times
	sent              Prompt        // the last one
	last              []llm.Message // its messages
}

func newWorld(t testing.TB, layout Layout) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), layout: layout, room: testRoom, private: true, maxOutput: 500,
		now: time.Date(2026, 11, 21, 8, 14, 0, 0, time.UTC), tools: []string{"append_memory", "task", "add_skill", "read_file"}}
	var err error
	w.zone, err = time.LoadLocation("Europe/Berlin")
	w.must(err)
	w.db, err = storetest.Open(t, filepath.Join(w.dir, "bot.db"))
	w.must(err)
	t.Cleanup(func() { w.db.Close() })
	w.file("BASE_PROMPT.txt", "<!-- section: core requires: always -->\nYou are {agent_name}.\n\n<!-- section: tasks requires: task -->\nUse the task tool.\n")
	w.file("prompts/SEED_en.txt", "Greet the person.\n")
	w.file("prompts/SANITY.txt", "")
	w.restart()
	return w
}

// restart makes everything anew but for the files and the database.
func (w *world) restart() {
	w.t.Helper()
	var err error
	w.memory, err = memory.Open(w.t.Context(), memory.Config{DB: w.db, Dir: w.dir, Owner: testUser, Backend: w.backend})
	w.must(err)
	w.tasks = task.NewStore(w.db, task.Config{Now: func() time.Time { return w.now }})
	w.goals = goal.NewStore(w.db, func() time.Time { return w.now })
	w.skills = skill.Open(filepath.Join(w.dir, "skills"), nil)
	w.history = history.NewStore(w.db)
	w.assembler, err = New(Config{
		Layout: w.layout, DB: w.db, History: w.history, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Sources: &section.Sources{Dir: w.dir, Defaults: reverie.Data, Name: "Reverie", Profiles: profile.Store{Dir: w.dir, Location: w.zone}, SeedLanguage: "en",
			Memory: w.memory, Tasks: w.tasks, Skills: w.skills, KnownTools: w.tools, Instructions: w.instructions,
			Models: []string{"small", "large"}, Summary: func(tool string) string { return "what " + tool + " is for" },
			Machine:  "host attic, OS linux/amd64",
			Programs: func(context.Context) ([]section.Program, error) { return w.programs, nil }},
	})
	w.must(err)
	w.assembler.deadline = time.Minute // a busy machine is no contributor that hangs; who tests those sets less
	w.assembler.nonce = func() string { return "k3f9" }
}

// instruct changes the owner's instructions, as an edited configuration does.
func (w *world) instruct(text string) { w.instructions, w.assembler.cfg.Instructions = text, text }

// contribute gives the world's layout one contributor more, last in its zone.
func (w *world) contribute(c section.Contributor) {
	w.t.Helper()
	a := w.assembler
	a.contributors = append(a.contributors, c)
	w.extra = append(w.extra, c)
	layout := slices.Concat(layouts[w.layout], w.extra)
	slices.SortStableFunc(layout, func(a, b section.Contributor) int { return strings.Compare(string(a.Zone), string(b.Zone)) }) // prefix, tail
	a.rows[w.layout] = rowsOf(layout, a.contributors, nil)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// file writes a file of the data folder as an editor would.
func (w *world) file(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	w.must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.must(os.WriteFile(path+"~", []byte(text), 0o600))
	w.must(os.Rename(path+"~", path))
}

func (w *world) add(m history.Message) history.Message {
	w.t.Helper()
	m.Room, m.At = history.Timeline(w.room), w.now
	w.must(w.history.Append(w.t.Context(), &m))
	w.now = w.now.Add(time.Second)
	return m
}

func (w *world) says(text string) history.Message {
	return w.add(history.Message{Role: llm.User, Sender: testUser, Text: text, Header: w.assembler.Header(w.now.In(w.zone), testUser, !w.private)})
}

// tells is says, and what is sent for it.
func (w *world) tells(text string) Prompt {
	w.t.Helper()
	w.says(text)
	return w.send()
}

func (w *world) answers(text string) { w.add(history.Message{Role: llm.Assistant, Text: text}) }

func (w *world) callsTool(name, args string) {
	w.calls++
	w.add(history.Message{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: fmt.Sprintf("call_%d", w.calls), Name: name, Arguments: args}}})
}

// uses is a call of a tool with its result.
func (w *world) uses(name, args, result string) {
	w.t.Helper()
	w.callsTool(name, args)
	w.result(result)
}

func (w *world) result(text string) {
	w.add(history.Message{Role: llm.Tool, CallID: fmt.Sprintf("call_%d", w.calls), Text: text})
}

func (w *world) remembers(text string) {
	w.t.Helper()
	_, _, err := w.memory.Add(w.t.Context(), memory.Entry{Scope: w.scopes()[0], Text: text, Source: memory.Assistant, Integrity: trust.User}, "assistant")
	w.must(err)
}

func (w *world) addTask(priority int, text string) task.Task {
	w.t.Helper()
	made, err := w.tasks.Add(w.t.Context(), task.Task{Room: w.room, User: testUser, Label: w.caller().Label(), Content: text, Priority: priority})
	w.must(err)
	w.now = w.now.Add(time.Second)
	w.numbered++
	id := fmt.Sprintf("task_%d", w.numbered) // the store's are random
	_, err = w.db.Exec(`UPDATE task SET id = ? WHERE id = ?`, id, made.ID)
	w.must(err)
	made.ID = id
	return made
}

func (w *world) scopes() []memory.Scope { return memory.Strict.Visible(w.room, testUser, w.private) }

// caller is the person whose message is answered, with words that are trusted.
func (w *world) caller() trust.Caller {
	return trust.Caller{Place: trust.Place{Room: w.room, Person: testUser, Private: w.private}, Integrity: trust.User}
}

func (w *world) turn() Turn {
	w.t.Helper()
	past := expect.Must(w.history.Load(context.Background(), history.Timeline(w.room)))(w.t)
	return Turn{ToolTokens: 100, Window: w.window, MaxOutput: w.maxOutput, Compacted: w.compacted, Turn: section.Turn{
		Room: w.room, User: testUser, Scopes: w.scopes(), Shared: !w.private, Tools: w.tools, Now: w.now.In(w.zone), History: past,
		Mode: w.mode, Tier: w.tier, Persona: w.persona, Goal: w.goal, Steps: w.steps, Pin: w.pin, Markers: w.markers, Summary: w.summary,
		Thinking: w.thinking, Model: w.model, Context: w.context}}
}

func (w *world) assemble() Prompt {
	w.t.Helper()
	return w.assembles(w.turn())
}

func (w *world) assembles(t Turn) Prompt {
	w.t.Helper()
	p := expect.Must(w.assembler.Assemble(context.Background(), t))(w.t)
	return p
}

// previews looks at the prompt of the world's turn.
func (w *world) previews() Prompt {
	w.t.Helper()
	turn := w.turn()
	turn.Preview = true
	return w.assembles(turn)
}

// startsNew begins another conversation in the room.
func (w *world) startsNew() {
	w.t.Helper()
	expect.Must(w.history.StartNew(context.Background(), history.Timeline(w.room)))(w.t)
	w.last = nil
}

// send assembles and commits. It fails the test when a request of the stable
// layout is not the one before plus new bytes, unless a new epoch says why.
func (w *world) send() Prompt {
	w.t.Helper()
	p := w.assemble()
	now := p.Messages()
	if w.layout == Stable && !p.Report.Epoch.New && !strings.HasPrefix(flat(now), flat(w.last)) {
		w.t.Errorf("within an epoch, a request is not the one before plus new bytes:\n%s\n--- then ---\n%s", flat(w.last), flat(now))
	}
	w.must(w.assembler.Commit(context.Background(), p))
	past := expect.Must(w.history.Load(context.Background(), history.Timeline(w.room)))(w.t)
	if stored, sent := past[len(past)-1], now[len(now)-1].Content; !strings.HasSuffix(sent, stored.Tail) || strings.Contains(sent, "[/note ") != (stored.Tail != "") {
		w.t.Errorf("sent %q, but stored as its tail %q", sent, stored.Tail)
	}
	w.sent, w.last = p, now
	return p
}

// flat is a request as one string, without anything behind the newest message.
func flat(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "=== %s", m.Role)
		if m.ToolCallID != "" {
			fmt.Fprintf(&b, " of %s", m.ToolCallID)
		}
		b.WriteString("\n" + m.Content)
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "\n→ %s %s(%s)", c.ID, c.Name, c.Arguments)
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// expect says whether the newest request holds each of the texts.
func (w *world) expect(holds bool, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if strings.Contains(flat(w.last), text) != holds {
			w.t.Errorf("%q in the request: want %v; it reads\n%s", text, holds, flat(w.last))
		}
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden plays each turn script of testdata in the layouts that it has a
// want.LAYOUT for, and compares every request with the one that stands there.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		archive := expect.Must(txtar.ParseFile(file))(t)
		for _, layout := range Layouts() {
			want := "want." + string(layout)
			if !slices.ContainsFunc(archive.Files, func(f txtar.File) bool { return f.Name == want }) {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+string(layout), func(t *testing.T) {
				got := play(t, layout, archive)
				if again := play(t, layout, archive); again != got {
					t.Errorf("the same script gave other bytes (-first +second):\n%s", cmp.Diff(got, again))
				}
				want := entry(archive, want)
				if *update {
					want.Data = []byte(got)
					return
				}
				expect.NoDiff(t, got, string(want.Data), "requests differ; if that is meant, run go test -update")
			})
		}
		if *update {
			expect.OK(t, os.WriteFile(file, txtar.Format(archive), 0o644))
		}
	}
}

// entry finds a file of an archive, or adds it.
func entry(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name})
	return &a.Files[len(a.Files)-1]
}

// play runs the archive's script and returns what was sent.
func play(t *testing.T, layout Layout, a *txtar.Archive) string {
	w := newWorld(t, layout)
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "data/"); ok {
			w.file(name, string(f.Data))
		}
	}
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(string(entry(a, "script").Data)), "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		step(w, a, verb, rest, &out)
	}
	return out.String()
}

// step runs one line of a script.
func step(w *world, a *txtar.Archive, verb, rest string, out *strings.Builder) {
	number := func(s string) int {
		n := expect.Must(strconv.Atoi(s))(w.t)
		return n
	}
	switch verb {
	case "", "#":
	case "at": // local time
		at := expect.Must(time.ParseInLocation("2006-01-02 15:04", rest, w.zone))(w.t)
		w.now = at
	case "user":
		w.says(rest)
	case "reply":
		w.answers(rest)
	case "call":
		name, args, _ := strings.Cut(rest, " ")
		w.callsTool(name, args)
	case "result":
		w.result(rest)
	case "fails":
		w.fails(rest)
	case "compacted": // all but the newest N messages
		w.compacts(number(rest))
	case "remember":
		w.remembers(rest)
	case "task":
		priority, text, _ := strings.Cut(rest, " ")
		w.addTask(number(priority), text)
	case "done":
		expect.Must(w.tasks.Complete(w.t.Context(), w.caller(), rest, "it is done"))(w.t)
	case "write": // FILE as the archive's ENTRY
		name, from, _ := strings.Cut(rest, " ")
		w.file(name, string(entry(a, from).Data))
	case "remove":
		w.must(os.Remove(filepath.Join(w.dir, rest)))
	case "tools":
		w.tools = strings.Split(rest, ",")
	case "maxOutput":
		w.maxOutput = number(rest)
	case "preview": // LAYOUT
		t := w.turn()
		if t.Preview = true; rest != "full" {
			t.Layout = Layout(rest)
		}
		p := expect.Must(w.assembler.Assemble(w.t.Context(), t))(w.t)
		show(out, rest, "", flat(p.Messages()), p.Report)
	case "mode": // NAME TIER
		mode, tier, _ := strings.Cut(rest, " ")
		w.mode, w.tier = mode, number(tier)
	case "tier":
		w.tier = number(rest)
	case "goal":
		w.goal = []string{rest}
	case "steps":
		if w.steps = nil; rest != "" {
			w.steps = strings.Split(rest, "; ")
		}
	case "pin":
		w.pin = rest
	case "summary":
		w.summary = rest
	case "think":
		w.thinking = rest
	case "model":
		w.model = rest
	case "instructions":
		w.instruct(rest)
	case "window":
		w.window = number(rest)
	case "new":
		w.startsNew()
	case "retry":
		w.retries()
	case "restart":
		w.restart()
	case "send":
		before := flat(w.last)
		p := w.send()
		show(out, rest, before, flat(w.last), p.Report)
	case "report":
		out.WriteString("##### report\n" + w.assemble().Report.String() + "\n\n")
	default:
		w.t.Fatalf("unknown step %q", verb)
	}
}

// show writes a request; what it begins with in common with the one before is
// left out if that is all of the one before.
func show(out *strings.Builder, name, before, now string, r Report) {
	fmt.Fprintf(out, "##### request: %s", name)
	if r.Epoch.New {
		fmt.Fprintf(out, " (new epoch: %s)", r.Epoch.Reason)
	}
	out.WriteString("\n")
	if rest, ok := strings.CutPrefix(now, before); ok && before != "" {
		now = "(all of the last request, and then)" + rest
	}
	out.WriteString(now + "\n\n")
}
