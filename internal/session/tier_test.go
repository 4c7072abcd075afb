package session

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"

	"reverie/internal/llm"
	"reverie/internal/prompt"
)

// machine is a manager whose window is what a test says, with a clock of its own.
type machine struct {
	*Manager
	room *room
	dir  string
	in   prompt.Inputs
	now  time.Time
}

func newMachine(t *testing.T, window int) *machine {
	t.Helper()
	w := newWorld(t, t.TempDir())
	m := &machine{room: w.room, dir: w.dir, now: time.Date(2026, 11, 21, 0, 10, 0, 0, time.UTC)}
	m.enforce(window)
	c := w.cfg
	c.Now = func() time.Time { return m.now }
	c.Window = func() prompt.Inputs { return m.in }
	m.Manager = New(c)
	return m
}

func (m *machine) enforce(window int) {
	m.in.Model, m.in.ID, m.in.Server = "local", "m at here", prompt.Said{Tokens: window, By: "a test"}
}

// template writes the text of a tier of the assistant, as its owner may.
func (m *machine) template(t *testing.T, tier int, text string) {
	t.Helper()
	dir := filepath.Join(m.dir, "prompts", "assistant")
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "tier"+string(rune('0'+tier))+".txt"), []byte(text), 0o600))
}

// assemble makes a prompt as a turn does when compacting does not help.
func (s *Session) assemble(ctx context.Context, t prompt.Turn) (prompt.Prompt, error) {
	p, err := s.cfg.Prompt.Assemble(ctx, t)
	return s.orShorter(ctx, t, p, err)
}

// longBase writes a base prompt that is short in tier 1, and in the others longer
// than 3800 tokens allow: nothing of it may be left out.
func (m *machine) longBase(t *testing.T) {
	t.Helper()
	base := "<!-- section: identity -->\nBot.\n<!-- section: core tiers: 1 -->\nShort.\n<!-- section: core tiers: 2-5 -->\n" +
		strings.Repeat("Many words. ", 1200) + "\n<!-- section: safety -->\nBe safe.\n"
	must(t, os.WriteFile(filepath.Join(m.dir, "BASE_PROMPT.txt"), []byte(base), 0o600))
}

// tell has the owner say something in a room.
func (m *machine) tell(t *testing.T, s *Session, id string) Inbound {
	t.Helper()
	in := Inbound{ID: id, Room: s.room, Sender: owner, Text: "hello " + id, Private: true, At: m.now}
	said := result(s.message(t.Context(), in))(t)
	must(t, m.cfg.History.Append(t.Context(), &said))
	return in
}

// turn is the turn of the room's next request, made with the tier of its lock.
func (m *machine) turn(t *testing.T, s *Session, in Inbound) prompt.Turn {
	t.Helper()
	past := result(m.cfg.History.Load(t.Context(), history.Talk(s.room)))(t)
	how := result(s.manner(t.Context(), inDM.Place, past, false))(t)
	turn := s.promptTurn(in, past, how)
	if turn.Tier != how.tier {
		t.Fatalf("the turn has tier %d, the room %d", turn.Tier, how.tier)
	}
	return turn
}

func (m *machine) lock(t *testing.T, room string) TierLock {
	t.Helper()
	l, err := m.tierLock(t.Context(), history.Talk(room))
	if err != nil || l == nil {
		t.Fatalf("no lock: %v", err)
	}
	return *l
}

// TestWindowGoesToAndFro: a window that crosses the bound of a tier time and again changes
// nothing of the prompt, not in the next start either; a new conversation has the new tier.
func TestWindowGoesToAndFro(t *testing.T) {
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
		p := result(s.assemble(t.Context(), m.turn(t, s, in)))(t)
		must(t, m.cfg.Prompt.Commit(t.Context(), p))
		if !strings.Contains(p.Prefix, "Words of tier 3.") || p.Report.Epoch.New != (i == 0) {
			t.Fatalf("request %d, new epoch %v:\n%s", i, p.Report.Epoch.New, p.Prefix)
		}
		m.enforce([]int{20480, 16384}[i%2])
		m.now = m.now.Add(time.Minute)
	}
	m.enforce(40960)
	result(s.startNew(t.Context(), in, ""))(t)
	if turn := m.turn(t, s, m.tell(t, s, "$2")); turn.Tier != 5 {
		t.Errorf("after !new: tier %d, lock %+v", turn.Tier, m.lock(t, "!locked"))
	}
}

// TestTierAtACompaction: it is a boundary; a room without a lock has none.
func TestTierAtACompaction(t *testing.T) {
	m := newMachine(t, 32768)
	s := newSession(m.Manager, "!r")
	must(t, s.compacted(t.Context()))
	in := m.tell(t, s, "$1")
	m.turn(t, s, in)
	m.enforce(8192)
	if turn := m.turn(t, s, in); turn.Tier != 4 {
		t.Errorf("before: tier %d", turn.Tier)
	}
	must(t, s.compacted(t.Context()))
	if turn := m.turn(t, s, in); turn.Tier != 2 || m.lock(t, "!r").Reason != atCompaction {
		t.Errorf("after: tier %d, %+v", turn.Tier, m.lock(t, "!r"))
	}
}

// TestPromptThatDoesNotFitAnyMore: only then the tier goes down in the middle of a conversation.
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
	if l := m.lock(t, "!r"); l.Reason != atTooLarge || l.Window != 3800 {
		t.Errorf("lock %+v", l)
	}
	m.enforce(600)
	turn := m.turn(t, s, in)
	turn.Window = 600
	if _, err := s.assemble(t.Context(), turn); err == nil || m.lock(t, "!r").Window != 3800 {
		t.Errorf("600 tokens: %v, lock %+v", err, m.lock(t, "!r"))
	}
}

// TestServerIsRemembered: what it enforced counts when it is silent.
func TestServerIsRemembered(t *testing.T) {
	m := newMachine(t, 32768)
	s := newSession(m.Manager, "!r")
	m.turn(t, s, m.tell(t, s, "$1"))
	m.enforce(0)
	decision := func() prompt.Decision {
		t.Helper()
		d := result(m.Decision(t.Context()))(t)
		return d
	}
	if d := decision(); d.Window != 32768 || d.Source != prompt.ByLast || !strings.Contains(strings.Join(d.Steps, "\n"), "last seen: 32768 tokens (a test, on 2026-11-21 00:10)") {
		t.Errorf("%+v", d)
	}
	m.in.ID = "another"
	if d := decision(); d.Source != prompt.ByNobody {
		t.Errorf("of another model: %+v", d)
	}
}

// TestWindowInputs: what detection says becomes the right source.
func TestWindowInputs(t *testing.T) {
	asked := llm.Limit{Tokens: 9000, Source: "x", At: noon}
	tests := []struct {
		name  string
		limit func(llm.Limit) llm.Limit
		want  prompt.Origin
	}{
		{"configured", func(l llm.Limit) llm.Limit { l.Label, l.At = llm.Enforced, time.Time{}; return l }, prompt.ByOwner},
		{"enforced", func(l llm.Limit) llm.Limit { l.Label = llm.Enforced; return l }, prompt.ByServer},
		{"hosted", func(l llm.Limit) llm.Limit { l.Label = llm.Max; return l }, prompt.ByHost},
		{"likely", func(l llm.Limit) llm.Limit { l.Label = llm.Estimated; return l }, prompt.ByModel},
		{"at least", func(l llm.Limit) llm.Limit { l.Label, l.Least = llm.Estimated, true; return l }, prompt.ByLeast},
		{"nothing", func(l llm.Limit) llm.Limit { l.Label = llm.Default; return l }, prompt.ByNobody},
	}
	for _, tt := range tests {
		in := WindowInputs(llm.Detection{Model: "local", Limit: tt.limit(asked), Server: llm.Ollama, Trained: 8000, Outside: 30})
		if !in.Ollama || in.Trained != 8000 || in.Outside != 30 || in.Model != "local" {
			t.Errorf("%s: %+v", tt.name, in)
		}
		if d := prompt.Decide(in); d.Source != tt.want {
			t.Errorf("%s: from %s", tt.name, d.Source)
		}
	}
}

// TestStatusSaysTheTier: with what it is made for, and what is known now.
func TestStatusSaysTheTier(t *testing.T) {
	m := newMachine(t, 8192)
	s := newSession(m.Manager, "!r")
	status := func() string {
		t.Helper()
		text := result(s.status(t.Context(), Inbound{Room: "!r", Sender: owner, Private: true}, ""))(t)
		return text
	}
	result(m.Preview(t.Context(), "!r"))(t) // looking is not talking
	wants(t, status(), "Prompt tier 2 of 5, for a window of 8192 tokens (server).")
	m.turn(t, s, m.tell(t, s, "$1"))
	m.enforce(65536)
	if text := status(); !strings.Contains(text, "Prompt tier 2 of 5, for a window of 8192 tokens (server), since 2026-11-21 00:10. Now the window is 65536 tokens; that may count from `!new` on.") {
		t.Errorf("after: %s", text)
	}
}
