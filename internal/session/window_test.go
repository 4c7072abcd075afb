package session

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/compaction"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/settings"
	"reverie/internal/test/expect"
	"reverie/internal/tool"
	"reverie/internal/tool/advisor"
	"reverie/internal/tool/mcp"
	"reverie/internal/tool/web"
	"reverie/internal/window"
)

// machine is a manager with a test's window and clock.
type machine struct {
	*Manager
	room *room
	dir  string
	in   window.Inputs
	now  time.Time
}

func newMachine(t *testing.T, tokens int) *machine {
	t.Helper()
	w := newWorld(t, t.TempDir())
	m := &machine{room: w.room, dir: w.dir, now: time.Date(2026, 11, 21, 0, 10, 0, 0, time.UTC)}
	m.enforce(tokens)
	c := w.cfg
	c.Now = func() time.Time { return m.now }
	c.WindowInputs = func() window.Inputs { return m.in }
	m.Manager = New(c)
	return m
}

func (m *machine) enforce(tokens int) {
	m.in.Model, m.in.ID, m.in.Server = "local", "m at here", window.Claim{Tokens: tokens, By: "a test"}
}

// template writes the assistant's prompt text of a tier, like an owner.
func (m *machine) template(t *testing.T, tier int, text string) {
	t.Helper()
	dir := filepath.Join(m.dir, "prompts", "assistant")
	expect.OK(t, os.MkdirAll(dir, 0o700))
	expect.OK(t, os.WriteFile(filepath.Join(dir, "tier"+string(rune('0'+tier))+".txt"), []byte(text), 0o600))
}

// assemble makes a prompt like a turn for which compaction does not help.
func (s *Session) assemble(ctx context.Context, t prompt.Turn) (prompt.Prompt, error) {
	p, err := s.cfg.Prompt.Assemble(ctx, t)
	return s.retryLowerTier(ctx, t, p, err)
}

// longBase writes a base prompt that is short in tier 1, and in the others longer than 3800 tokens allow: nothing of it may be left out.
func (m *machine) longBase(t *testing.T) {
	t.Helper()
	base := "<!-- section: identity -->\nBot.\n<!-- section: core tiers: 1 -->\nShort.\n<!-- section: core tiers: 2-5 -->\n" +
		strings.Repeat("Many words. ", 1200) + "\n<!-- section: safety -->\nBe safe.\n"
	expect.OK(t, os.WriteFile(filepath.Join(m.dir, "BASE_PROMPT.txt"), []byte(base), 0o600))
}

// tell delivers an owner's message in a room.
func (m *machine) tell(t *testing.T, s *Session, id string) chat.Message {
	t.Helper()
	in := chat.Message{Head: chat.Head{ID: id, Room: s.room, Sender: owner, Private: true, At: m.now}, Text: "hello " + id}
	said := expect.Must(s.historyMessage(t.Context(), in))(t)
	expect.OK(t, m.cfg.History.Append(t.Context(), &said))
	return in
}

// turn makes the room's next request with the tier of its lock.
func (m *machine) turn(t *testing.T, s *Session, in chat.Message) prompt.Turn {
	t.Helper()
	past := expect.Must(m.cfg.History.Load(t.Context(), history.Timeline(s.room)))(t)
	how := expect.Must(s.turnSettings(t.Context(), inDM.Place, past, false))(t)
	turn := s.promptTurn(item{Message: in}, past, how)
	if turn.Tier != how.tier {
		t.Fatalf("the turn has tier %d, the room %d", turn.Tier, how.tier)
	}
	return turn
}

func (m *machine) lock(t *testing.T, room string) window.Lock {
	t.Helper()
	l, err := newSession(m.Manager, history.Timeline(room)).windows().Lock(t.Context(), room)
	if err != nil || l == nil {
		t.Fatalf("no lock: %v", err)
	}
	return *l
}

// TestTierIsLocked: a changed window or a restart does not change the tier; a new conversation does.
func TestTierIsLocked(t *testing.T) {
	m := newMachine(t, 16384)
	for tier := 1; tier <= 5; tier++ {
		m.template(t, tier, "Words of tier "+string(rune('0'+tier))+".")
	}
	s := newSession(m.Manager, "!locked")
	in := m.tell(t, s, "$0")
	for i := range 20 {
		if i == 10 {
			m.Manager = New(m.cfg)
			s = newSession(m.Manager, "!locked")
		}
		p := expect.Must(s.assemble(t.Context(), m.turn(t, s, in)))(t)
		expect.OK(t, m.cfg.Prompt.Commit(t.Context(), p))
		if !strings.Contains(p.Prefix, "Words of tier 3.") || p.Report.Epoch.New != (i == 0) {
			t.Fatalf("request %d, new epoch %v:\n%s", i, p.Report.Epoch.New, p.Prefix)
		}
		m.enforce([]int{20480, 16384}[i%2])
		m.now = m.now.Add(time.Minute)
	}
	m.enforce(40960)
	expect.OK(t, s.StartNew(t.Context()))
	turn := m.turn(t, s, m.tell(t, s, "$2"))
	expect.False(t, turn.Tier != 5, "after !new: tier %d, lock %+v", turn.Tier, m.lock(t, "!locked"))
}

// TestTierAtACompaction: a compaction may change the tier, but a room without a lock has none.
func TestTierAtACompaction(t *testing.T) {
	m := newMachine(t, 32768)
	s := newSession(m.Manager, "!r")
	expect.OK(t, s.noteCompacted(t.Context()))
	in := m.tell(t, s, "$1")
	m.turn(t, s, in)
	m.enforce(8192)
	turn := m.turn(t, s, in)
	expect.False(t, turn.Tier != 4, "before: tier %d", turn.Tier)
	expect.OK(t, s.noteCompacted(t.Context()))
	turn = m.turn(t, s, in)
	expect.False(t, turn.Tier != 2 || m.lock(t, "!r").Reason != "compaction", "after: tier %d, %+v", turn.Tier, m.lock(t, "!r"))
}

// TestPromptThatDoesNotFitAnyMore: only then the tier is lowered within a conversation.
func TestPromptThatDoesNotFitAnyMore(t *testing.T) {
	m := newMachine(t, 40960)
	m.longBase(t)
	s := newSession(m.Manager, "!r")
	in := m.tell(t, s, "$1")
	for _, c := range []struct {
		window, tier int
		prefix       string
	}{{40960, 5, "Many words."}, {8192, 5, "Many words."}, {3800, 1, "Short."}, {3800, 1, "Short."}} {
		m.enforce(c.window)
		turn := m.turn(t, s, in)
		turn.Window = c.window
		p, err := s.assemble(t.Context(), turn)
		if l := m.lock(t, "!r"); err != nil || !strings.Contains(p.Prefix, c.prefix) || l.Tier != c.tier {
			t.Fatalf("at %d: %v, lock %+v", c.window, err, l)
		}
	}
	l := m.lock(t, "!r")
	expect.False(t, l.Reason != "the prompt no longer fitted" || l.Window != 3800, "lock %+v", l)
	m.enforce(600)
	turn := m.turn(t, s, in)
	turn.Window = 600
	_, err := s.assemble(t.Context(), turn)
	expect.False(t, err == nil || m.lock(t, "!r").Window != 3800, "600 tokens: %v, lock %+v", err, m.lock(t, "!r"))
}

// TestServerLimitIsStored: a window that the server enforced counts later, when the server reports none.
func TestServerLimitIsStored(t *testing.T) {
	m := newMachine(t, 32768)
	s := newSession(m.Manager, "!r")
	m.turn(t, s, m.tell(t, s, "$1"))
	m.enforce(0)
	decision := func() window.Decision {
		t.Helper()
		return expect.Must(s.windows().Decide(t.Context(), m.in))(t)
	}
	if d := decision(); d.Window != 32768 || d.Source != window.ByLast || !strings.Contains(strings.Join(d.Steps, "\n"), "last seen: 32768 tokens (a test, on 2026-11-21 00:10)") {
		t.Errorf("%+v", d)
	}
	m.in.ID = "another"
	d := decision()
	expect.False(t, d.Source != window.ByDefault, "of another model: %+v", d)
}

// previewed returns the prompt of the next message in room.
func previewed(t *testing.T, m *Manager, room string) prompt.Prompt {
	t.Helper()
	p, _, err := m.Preview(t.Context(), room)
	expect.OK(t, err)
	return p
}

// TestStatusSaysTheTier: !status shows the tier, its window and the current window.
func TestStatusSaysTheTier(t *testing.T) {
	m := newMachine(t, 8192)
	s := newSession(m.Manager, "!r")
	status := func() string {
		t.Helper()
		return expect.Must(command.Run(t.Context(), s.newCommandCall(chat.Message{Head: chat.Head{Room: "!r", Sender: owner, Private: true}}), "status", ""))(t)
	}
	previewed(t, m.Manager, "!r") // looking is not talking
	expect.Has(t, status(), "Prompt tier 2 of 5, for a context window of 8192 tokens (reported by its server).")
	m.turn(t, s, m.tell(t, s, "$1"))
	m.enforce(65536)
	expect.Has(t, status(), "Prompt tier 2 of 5, for a context window of 8192 tokens (reported by its server), since 2026-11-21 00:10. The context window is now 65536 tokens; the tier may change with `!new`.")
}

// counts are servers with different token counts of a request's words.
var counts = map[string]func(text string) float64{
	"a third of the bytes": func(s string) float64 { return float64(len(s)) / 3 },
	"bytes by 4.5":         func(s string) float64 { return float64(len(s)) / 4.5 },
	"wide letters heavier": func(s string) float64 {
		wide := 0
		for _, r := range s {
			if r >= 0x2E80 {
				wide++
			}
		}
		return float64(utf8.RuneCountInString(s)-wide)/4 + 1.6*float64(wide)
	},
}

// words returns a request's text, joined like a server's template does.
func spoken(t testing.TB, body string) string {
	t.Helper()
	var req struct {
		Messages []struct{ Content string }
		Tools    []json.RawMessage
	}
	err := json.Unmarshal([]byte(body), &req)
	expect.False(t, err != nil, "%v", err)
	var b strings.Builder
	for _, m := range req.Messages {
		b.WriteString("<|im_start|>" + m.Content)
	}
	for _, raw := range req.Tools {
		b.Write(raw)
	}
	return b.String()
}

// TestTokenRatio: after ten turns the estimate is within three percent of any server's count, also after a restart.
func TestTokenRatio(t *testing.T) {
	says := []string{
		"We go on talking about the garden, and what to plant where; the beds face south and are dry in June.",
		"Der Garten liegt nach Süden, und die Beete trocknen im Juni aus. Was pflanzen wir, und wann?",
		"今日は庭の話をしましょう。六月には土が乾くので、何を植えるか考えています。",
		`{"bed": 4, "plants": ["beans", "kale"], "m2": 3.5, "dates": ["2026-05-01", "2026-06-12"]}`,
	}
	for name, count := range counts {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run := func(from, to int) {
				w := newWorldOf(t, dir, "fts5", 16_000)
				defer w.stop()
				w.script.count = func(body string) int { return int(count(spoken(t, body))) }
				for i := from; i < to; i++ {
					w.say(t, fmt.Sprint("$", i), fmt.Sprintf("%d. %s", i, says[i%len(says)]))
					counted := w.script.count(w.lastAsked())
					w.mu.Lock()
					foretold := w.sessions["!dm"].usage.expected
					w.mu.Unlock()
					off := math.Abs(float64(foretold-counted)) / float64(counted)
					expect.False(t, i >= 10 && off > 0.03, "turn %d: %d foretold, %d counted: %.1f %%", i, foretold, counted, 100*off)
					if i == 0 || i == 9 || i == from || i == to-1 {
						t.Logf("turn %d: %d foretold, %d counted: %.1f %%", i, foretold, counted, 100*off)
					}
				}
				expect.Has(t, w.say(t, fmt.Sprint("$status", from), "!status").Text, "% of the available context window")
			}
			run(0, 20)
			run(20, 24) // a new process
		})
	}
}

// TestFullWindow: with a server that counts double, compaction happens before a request is too large, and rarely.
func TestFullWindow(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.count = func(body string) int { return len(body) / 2 }
	for i := range 60 {
		w.say(t, fmt.Sprintf("$%d", i), strings.Repeat("A sentence about nothing in particular. ", 40))
	}
	for _, body := range w.script.asked() {
		n := len(body) / 2
		expect.False(t, n > 16000-500, "a request of %d tokens", n)
	}
	reasons := w.column(t, `SELECT reason FROM compaction`)
	n := len(reasons)
	expect.False(t, n == 0 || n > 8 || reasons[n-1] != compaction.Full, "compacted because %v", reasons)
	expect.Has(t, w.say(t, "$status", "!status").Text, "of the available context window")
}

// TestToolBudget: tools stay within each tier's budget with space for one more; one over the budget is left out.
func TestToolBudget(t *testing.T) {
	w := newWorld(t, t.TempDir())
	all := tool.New(tool.Config{Models: []string{"small", "big"}, Web: web.New(web.Config{Fetch: true, Engines: []web.Engine{{Kind: web.Brave}}}), MCP: mcp.New(mcp.Config{}),
		Commands: tool.Commands{Code: true, Rooms: []string{"*"}}, Advisors: &advisor.Panel{}})
	full, brief := all.Specs(), all.Brief()
	expect.False(t, toolBudget[1] > 600, "tier 1 has too many tokens for tools")
	weather := llm.ToolSpec{Name: "weather", Description: "Tell the weather at a place, now or on a day of the next week.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string","description":"A town."},` +
			`"day":{"type":"string","description":"Such as 2026-12-24."}},"required":["place"],"additionalProperties":false}`)}
	large := weather
	large.Name, large.Parameters = "large", json.RawMessage(`{"type":"object","properties":{},"description":"`+string(make([]byte, 40_000))+`"}`)
	now := offers(full, brief, true)
	then := offers(append(slices.Clone(full), weather, large), append(slices.Clone(brief), weather, large), true)
	for _, m := range settings.Modes() {
		for tier := 1; tier <= topTier; tier++ {
			o := now[m.Name][tier]
			for _, s := range policyOf(m).Filter(full) {
				expect.False(t, tier >= tool.MinTier(s.Name) != slices.Contains(o.Names, s.Name), "%s, tier %d: is %s offered? %v", m.Name, tier, s.Name, o.Names)
			}
			if m.Name == settings.Modes()[0].Name {
				t.Logf("tier %d: %4d of %4d tokens, %d tools", tier, o.Tokens, toolBudget[tier], len(o.Names))
			}
			expect.False(t, o.Tokens > toolBudget[tier], "%s, tier %d: %d tokens of %d", m.Name, tier, o.Tokens, toolBudget[tier])
			with := then[m.Name][tier]
			if p := policyOf(m); slices.Contains(with.Names, "weather") != p.Allows("weather") || slices.Contains(with.Names, "large") ||
				with.Tokens != o.Tokens+map[bool]int{true: agent.DescriptionTokens(weather)}[p.Allows("weather")] {
				t.Errorf("%s, tier %d: with a new tool it offers %v, %d tokens", m.Name, tier, with.Names, with.Tokens)
			}
		}
	}
	w.say(t, "$1", "hello")
	past := w.past(t)
	s := w.sessionOf("!dm")
	how := expect.Must(s.turnSettings(t.Context(), s.place(chat.Head{Sender: owner, Private: true}), past, true))(t)
	how.tier = 1
	if turn := s.promptTurn(item{Message: chat.Message{Head: chat.Head{Sender: owner, Private: true}}}, past, how); turn.ToolTokens != now[how.mode.Name][1].Tokens || turn.ToolTokens < 200 {
		t.Errorf("the prompt of tier 1 counts %d tokens of tools", turn.ToolTokens)
	}
}

// notices returns the notices.
func (r *room) notices() (out []string) {
	defer holding(&r.mu)()
	for _, id := range r.order {
		if strings.HasPrefix(id, "compaction:") {
			out = append(out, r.final[id].Text)
		}
	}
	return out
}

// TestCompactCommands: !compact and !summary, without and with a summary.
func TestCompactCommands(t *testing.T) {
	w := newWorld(t, t.TempDir())
	n := w.summarising(t, func(text string) string {
		expect.Has(t, text, "hello there")
		return "The owner said hello, and that it is nice."
	})
	notice(t, w.say(t, "$1", "!summary"), "Nothing in this conversation has been summarised")
	expect.Has(t, w.say(t, "$2", "!compact").Text, "Nothing to summarise now")
	w.say(t, "$3", "hello there")
	w.chatter(t, "a", 6)
	done := w.say(t, "$4", "!compact").Text
	expect.False(t, !strings.HasPrefix(done, "I have summarised 4 messages: about ") || strings.Contains(done, "No model"), "!compact: %s", done)
	expect.Has(t, w.say(t, "$5", "!summary").Text, "The owner said hello, and that it is nice.")
	w.say(t, "$6", "and now?")
	expect.Has(t, w.lastPrompt(t), "The owner said hello, and that it is nice.")
	expect.Lacks(t, w.lastPrompt(t), "hello there")
	expect.Equal(t, *n, 1)
	expect.Equal(t, len(w.room.notices()), 0)
	got := w.say(t, "$7", "!compact")
	expect.False(t, !strings.Contains(got.Text, "Nothing to summarise now") || *n != 1, "a second time: %+v", got)
}

// TestCompactionIsTold: one notice, before the answer.
func TestCompactionIsTold(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	w.summarising(t, func(string) string { return "They talked about the weather and the garden." })
	w.untilCompacted(t, 1)
	expect.Equal(t, value[string](t, w, `SELECT reason FROM compaction`), compaction.Full) // else it came too late
	got := w.room.notices()
	expect.False(t, len(got) != 1 || got[0] != "I have summarised the earlier part of this conversation; `!summary` shows the summary.", "said: %q", got)
	defer holding(&w.room.mu)()
	last := w.room.order[len(w.room.order)-2]
	expect.False(t, !strings.HasPrefix(last, "compaction:") || !w.room.final[last].Notice, "it was said at another time: %v", w.room.order)
}

// TestRedeliveredAfterCompaction: a summarised message and the newest one are recognised when redelivered.
func TestRedeliveredAfterCompaction(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	w.summarising(t, func(string) string { return "They talked about the weather and the garden." })
	w.say(t, "$first", "hello there")
	w.untilCompacted(t, 1)
	last := w.say(t, "$last", "and now?")
	asked, said := len(w.script.asked()), w.room.count()
	w.say(t, "$first", "hello there")
	expect.Equal(t, w.say(t, "$last", "and now?").Text, last.Text)
	expect.False(t, len(w.script.asked()) != asked || w.room.count() != said,
		"%d more requests, %d more answers", len(w.script.asked())-asked, w.room.count()-said)
	if past, err := w.cfg.History.Load(t.Context(), "!dm"); err != nil || len(past) > 14 { // and not the whole conversation
		t.Errorf("%d messages are read for each request, %v", len(past), err)
	}
}

// TestServerRefuses: a refusal as too large causes one compaction a turn; if that does not help, the person is told.
func TestServerRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string // "" = as always
		helps   bool
	}{
		"once":              {[]string{"too large"}, true},
		"again":             {[]string{"too large", "too large", "not asked for"}, false},
		"again, after work": {[]string{"too large", `{"entry":"likes tea"}`, "too large", "not asked for"}, false},
	} {
		w := newWorld(t, t.TempDir())
		w.summarising(t, func(string) string { return "They talked about the weather and the garden." })
		w.chatter(t, "a", 15)
		summaries := w.script.reply
		w.script.reply = func(body string) (answer string, ok bool) {
			if isSummary(body) || len(c.answers) == 0 {
				return summaries(body)
			}
			answer, c.answers = c.answers[0], c.answers[1:]
			return answer, true
		}
		got := w.say(t, "$x", "and now?")
		if len(w.compactions(t)) != 1 || got.Notice == c.helps || !c.helps && (!strings.Contains(got.Text, "has become too long") || len(c.answers) != 1) {
			t.Errorf("%s: %v; answer %+v; not asked for: %q", name, w.compactions(t), got, c.answers)
		}
	}
}

// TestHugeMessages: messages of three windows and of 2 MB are answered, and the model is told that they are cut.
func TestHugeMessages(t *testing.T) {
	w := newWindow(t, t.TempDir(), 8192)
	w.summarising(t, func(string) string { return "They sent long texts, one after the other." })
	for i, size := range []int{3 * 8192, 3 * 8192, 500_000} {
		text := fmt.Sprintf("Begin %d. ", i) + strings.Repeat("word ", size) + fmt.Sprintf("What is the end %d?", i)
		began := time.Now()
		if got := w.say(t, fmt.Sprintf("$%d", i), text); got.Notice || !strings.HasPrefix(got.Text, "Understood.") {
			t.Fatalf("message %d is answered with %.300q", i, got.Text)
		}
		expect.Has(t, w.lastPrompt(t), fmt.Sprintf("Begin %d.", i), fmt.Sprintf("What is the end %d?", i), "characters left out here")
		if told := w.room.notices(); len(told) != i+1 || !strings.Contains(told[i], "Your message is longer than I can read at once") || strings.Contains(told[i], "summarised") != (i > 0) {
			t.Errorf("message %d: told %q", i, told)
		}
		t.Logf("%d bytes: %s", len(text), time.Since(began))
	}
	got := w.say(t, "$y", "!retry")
	expect.False(t, got.Notice, "!retry: %.300q", got.Text)
}

// TestManyToolResults: a thousand tool results, in one turn and in many.
func TestManyToolResults(t *testing.T) {
	for _, rounds := range []int{1, 40, 1000} { // into which they come
		w := newWindow(t, t.TempDir(), 8192)
		w.summarising(t, func(string) string { return "They looked at many files, and nothing was found in any of them." })
		w.append(t, history.Message{Role: llm.User, Sender: owner, EventID: "$1", Text: "look at all of it"})
		for r := range rounds {
			m := history.Message{Role: llm.Assistant}
			for i := range 1000 / rounds {
				m.Calls = append(m.Calls, llm.ToolCall{ID: fmt.Sprintf("c%d_%d", r, i), Name: "read_file", Arguments: `{"path":"x"}`})
			}
			w.append(t, m)
			for _, c := range m.Calls {
				w.append(t, history.Message{Role: llm.Tool, CallID: c.ID, Text: strings.Repeat("it says so. ", 30)})
			}
		}
		began := time.Now()
		if got := w.say(t, "$1", "look at all of it"); got.Notice || !strings.HasPrefix(got.Text, "Understood.") {
			t.Fatalf("in %d rounds: %.300q", rounds, got.Text)
		}
		expect.Has(t, w.lastPrompt(t), "look at all of it", "They looked at many files")
		t.Logf("in %d rounds: %s", rounds, time.Since(began))
	}
}

// TestSlowSummary: a summary is abandoned at its timeout.
func TestSlowSummary(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	w.cfg.SummaryTimeout = 50 * time.Millisecond
	hang := make(chan struct{})
	defer close(hang)
	w.summarising(t, func(string) string { return "" })
	quick := w.script.reply
	w.script.reply = func(body string) (string, bool) {
		if isSummary(body) {
			w.script.block = hang // the lock of the script is held
		} else {
			w.script.block = nil
		}
		return quick(body)
	}
	w.untilCompacted(t, 1)
	got := w.compactions(t)
	expect.False(t, got[0] != "extract", "level %v", got)
}

// TestStopEndsACompaction: !stop cancels it, and the history stays unchanged.
func TestStopEndsACompaction(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	hang := make(chan struct{})
	defer close(hang)
	asked := make(chan struct{}, 1)
	w.script.forever = strings.Repeat("I take note of it and will come back to it. ", 5)
	w.script.reply = func(body string) (string, bool) {
		w.script.block = nil
		if isSummary(body) {
			w.script.block = hang
			asked <- struct{}{}
		}
		return "", false
	}
	in := chat.Message{Head: chat.Head{Room: "!dm", Sender: owner, Private: true}}
	for i := 0; ; i++ {
		in.ID, in.Text, in.At = fmt.Sprint("$", i), strings.Repeat("we go on talking about the weather, ", 4), time.Now()
		expect.OK(t, w.Deliver(t.Context(), in))
		select {
		case <-w.room.handled:
			continue
		case <-asked:
		}
		break
	}
	stop := in
	stop.ID, stop.Text = "$stop", "!stop"
	expect.OK(t, w.Deliver(t.Context(), stop))
	for range 2 {
		<-w.room.handled
	}
	got := w.room.said(in.ID)
	expect.False(t, got.Text != i18n.Source()["stop.ended"] || len(w.compactions(t)) != 0, "said %+v; %v", got, w.compactions(t))
}
