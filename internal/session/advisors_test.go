package session

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/idle"
	"reverie/internal/llm"
	"reverie/internal/test/expect"
	"reverie/internal/tool"
	"reverie/internal/tool/advisor"
	"reverie/internal/trust"
)

// council is a world with advisors, and the two models that speak for them.
type council struct {
	*world
	panel    *advisor.Panel
	advisers *script // both models

	mu       sync.Mutex
	running  int
	together int           // most requests at the same time
	full     chan struct{} // closed when all have come
	await    int           // how many that is; 0 = none waits for others
}

func (c *council) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.running++
	if c.together = max(c.together, c.running); c.together == c.await {
		close(c.full)
	}
	wait := c.await > 0
	c.mu.Unlock()
	if wait {
		select {
		case <-c.full:
		case <-time.After(5 * time.Second): // they are not asked at the same time
		}
	}
	c.advisers.ServeHTTP(rw, r)
	defer holding(&c.mu)()
	c.running--
}

const (
	advises = "Assessment: renting keeps you free\nConfidence: high\nRisks: rising rents\nSuggestion: rent"
	consult = `ask_advisors {"question":"Rent or buy?","context":"They stay for three years."}`
)

// newCouncil is a world with the advisors of these names. Its model asks them, then answers. local puts both
// of their models on one server of this machine.
func newCouncil(t *testing.T, local bool, names ...string) *council {
	t.Helper()
	c := &council{world: newWorldOf(t, t.TempDir(), "flat_file", 32_000, consult, "I would rent."), full: make(chan struct{}),
		advisers: &script{forever: advises}}
	for _, name := range names {
		c.write(t, name, "---\nname: "+name+"\ndescription: Thinks as a "+name+"\n---\nYou are the "+name+".\n")
	}
	cfg := c.cfg
	models := []llm.ModelConfig{served(t, "local", 32_000, c.script.ServeHTTP), served(t, "one", 8_000, c.ServeHTTP), served(t, "two", 8_000, c.ServeHTTP)}
	cfg.Models = llm.New(llm.Config{Models: models, Roles: chatWithLocal, Retry: llm.Retry{Attempts: 1}, Meter: cfg.Usage})
	cfg.Waiting = idle.NewPriority()
	c.panel = &advisor.Panel{Dir: c.dir, Models: cfg.Models, Seats: []string{"one", "two"}, Waiting: cfg.Waiting, Log: cfg.Log,
		LocalServer: func(string) string { return map[bool]string{true: "127.0.0.1:11434"}[local] }}
	cfg.Tools = tool.New(tool.Config{Memory: cfg.Memory, Tasks: cfg.Tasks, Goals: cfg.Goals, Skills: cfg.Skills, Dir: c.dir, Advisors: c.panel})
	c.cfg = cfg
	c.restart(t)
	return c
}

func (c *council) write(t *testing.T, name, text string) {
	t.Helper()
	dir := filepath.Join(c.dir, "advisors", name)
	expect.OK(t, os.MkdirAll(dir, 0o700))
	expect.OK(t, os.WriteFile(filepath.Join(dir, "ADVISOR.md"), []byte(text), 0o600))
}

// result returns the result of the newest call.
func (c *council) result(t *testing.T) string {
	t.Helper()
	all := c.column(t, `SELECT text FROM message WHERE role = 'tool' ORDER BY id DESC LIMIT 1`)
	expect.Len(t, all, 1)
	return all[0]
}

// TestAdvisors: advisors are asked at the same time, each sees its persona and the question and nothing else, and
// their answers are for the model alone. The tokens count to the person.
func TestAdvisors(t *testing.T) {
	c := newCouncil(t, false, "optimist", "planner", "sceptic")
	c.write(t, "asleep", "---\nenabled: false\n---\nYou are asleep.\n")
	c.await = 3
	answers(t, c.say(t, "$1", "The code of my safe is 4711. Should we rent or buy?"), "I would rent.")
	expect.Equal(t, c.together, 3)
	expect.Has(t, c.result(t), "## optimist (Thinks as a optimist)\n"+advises, "## planner", "## sceptic", "This advice is for you alone")
	expect.Lacks(t, c.result(t), "asleep", "Without an answer")
	asked := c.advisers.asked()
	expect.Len(t, asked, 3)
	for i, body := range slices.Sorted(slices.Values(asked)) {
		expect.Has(t, body, "You are the "+[]string{"optimist", "planner", "sceptic"}[i], "Assessment: what you think of it", "Rent or buy?", "three years")
		expect.Lacks(t, body, `"tools"`, "4711", "Reverie", "[note", "<data")
	}
	for _, m := range c.room.final {
		expect.Lacks(t, m.Text, "Assessment", "rising rents")
	}
	used := expect.Must(c.cfg.Usage.LastWeek(t.Context(), owner))(t)
	expect.Equal(t, len(used), 3, used) // local, one, two
}

// TestAdvisorsAreOffered: the tool is there while the folder has an advisor, from the next request on.
func TestAdvisorsAreOffered(t *testing.T) {
	c := newCouncil(t, false)
	c.script.reply = func(string) (string, bool) { return "Well.", true }
	c.say(t, "$1", "hello")
	expect.Lacks(t, c.lastAsked(), `"ask_advisors"`)
	c.write(t, "sceptic", "You doubt.")
	c.say(t, "$2", "hello")
	expect.Has(t, c.lastAsked(), `"ask_advisors"`)
	expect.OK(t, os.RemoveAll(filepath.Join(c.dir, "advisors")))
	c.say(t, "$3", "hello")
	expect.Lacks(t, c.lastAsked(), `"ask_advisors"`)
}

// TestAdvisorsInSubSessions: a sub-session has the tool, too, while there is an advisor.
func TestAdvisorsInSubSessions(t *testing.T) {
	for want, names := range map[bool][]string{false: nil, true: {"sceptic"}} {
		c := newCouncil(t, false, names...)
		c.cfg.SubSessions.Parallel = 1
		c.restart(t)
		spawned, offered := false, false
		c.script.reply = func(body string) (string, bool) {
			switch {
			case strings.Contains(body, `## Objective\n`):
				offered = strings.Contains(body, `"name":"ask_advisors"`)
			case !spawned:
				spawned = true
				return `spawn_sub_session {"objective":"Find out what is cheaper","mode":"full"}`, true
			}
			return "Well.", true
		}
		c.say(t, "$1", "Let somebody find out what is cheaper.")
		waitUntil(t, "the sub-session has ended", func() bool {
			return len(c.column(t, `SELECT id FROM sub_session WHERE status = 'completed'`)) == 1
		})
		expect.Equal(t, offered, want)
	}
}

// TestAdvisorsOnOneMachine: a server of this machine is asked one question at a time, in the order of the names.
func TestAdvisorsOnOneMachine(t *testing.T) {
	c := newCouncil(t, true, "b", "a", "d", "c")
	answers(t, c.say(t, "$1", "Rent or buy?"), "I would rent.")
	expect.Equal(t, c.together, 1)
	order := ""
	for _, body := range c.advisers.asked() {
		_, persona, _ := strings.Cut(body, "You are the ")
		order += persona[:1]
	}
	expect.Equal(t, order, "abcd")
}

// TestLateAdvisors: who has not answered in time is left out and named. If all are late, the model decides alone.
func TestLateAdvisors(t *testing.T) {
	c := newCouncil(t, false, "quick", "slow")
	c.panel.Limit = 500 * time.Millisecond
	late := "the slow"
	c.advisers.hold = func(body string) <-chan struct{} {
		if strings.Contains(body, late) {
			return make(chan struct{})
		}
		return nil
	}
	answers(t, c.say(t, "$1", "Rent or buy?"), "I would rent.")
	expect.Has(t, c.result(t), "## quick", "Without an answer: slow (too late).\n[This")
	expect.Lacks(t, c.result(t), "## slow")

	late = "the "
	c.script.answers = []string{consult, "I decide alone."}
	answers(t, c.say(t, "$2", "Rent or buy?"), "I decide alone.")
	expect.Has(t, c.result(t), "nobody answered: quick (too late), slow (too late). Decide without advisors")
}

// TestAdvisorFails: an advisor whose models fail is named; the others advise.
func TestAdvisorFails(t *testing.T) {
	c := newCouncil(t, false, "planner", "sceptic")
	c.advisers.reply = func(body string) (string, bool) { return "500", strings.Contains(body, "the sceptic") }
	c.script.reply = func(body string) (string, bool) { return "500", strings.Contains(body, "You are the ") } // failover
	answers(t, c.say(t, "$1", "Rent or buy?"), "I would rent.")
	expect.Has(t, c.result(t), "## planner", "Without an answer: sceptic (the model failed).")
}

// TestAdviceKeepsTheLabel: advice on what strangers wrote is as foreign as that.
func TestAdviceKeepsTheLabel(t *testing.T) {
	for by, want := range map[string]trust.Integrity{owner: trust.Owner, bystander: trust.Foreign} {
		c := newCouncil(t, false, "sceptic")
		c.who.allowed = func(user string) bool { return user == owner }
		c.deliver(t, chat.Message{Head: chat.Head{ID: "$1", Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Text: "What do you say to that?",
			Quotes: []chat.Quote{{ID: "$q", Sender: by, Text: "Buy it from Mallory.", Why: chat.QuoteReply}}})
		expect.Has(t, c.result(t), "## sceptic")
		expect.Equal(t, fmt.Sprint(c.column(t, `SELECT integrity FROM message WHERE role = 'tool'`)), fmt.Sprintf("[%d]", want), by)
		expect.Equal(t, len(c.questionsAsked(t)), 0)
	}
}

// TestWhichAdvisors: the model names advisors. With more than five, or a wrong name, it is told which there are.
func TestWhichAdvisors(t *testing.T) {
	c := newCouncil(t, false, "a", "b", "c", "d", "e", "f")
	for names, want := range map[string]string{
		"":                "Name at most 5 of these advisors, each once: [a (Thinks as a a) b (Thinks",
		`"a","nobody"`:    "Nobody was asked.",
		`"B", "f"`:        "## b (Thinks as a b)\n" + advises + "\n\n## f (",
		`"a","a"`:         "Nobody was asked.",
		`"a","b","c","d"`: "## d",
	} {
		c.script.answers = []string{`ask_advisors {"question":"Rent or buy?","advisors":[` + names + `]}`, "I would rent."}
		answers(t, c.say(t, "", "Rent or buy?"), "I would rent.")
		expect.Has(t, c.result(t), want)
	}
}

// TestAdvisorsGiveWay: while a person waits for a model, advisors are not asked for background work.
func TestAdvisorsGiveWay(t *testing.T) {
	c := newCouncil(t, true, "sceptic")
	c.panel.Limit = 300 * time.Millisecond
	all := c.panel.List()
	leave := c.cfg.Waiting.PersonWaits("one")
	_, err := c.panel.Ask(t.Context(), all, advisor.Question{Text: "Rent or buy?", Background: true})
	expect.ErrorContains(t, err, "nobody answered: sceptic (too late)")
	expect.Len(t, c.advisers.asked(), 0)
	expect.Has(t, expect.Must(c.panel.Ask(t.Context(), all, advisor.Question{Text: "Rent or buy?"}))(t), "## sceptic")
	leave()
	expect.Has(t, expect.Must(c.panel.Ask(t.Context(), all, advisor.Question{Text: "Rent or buy?", Background: true}))(t), "## sceptic")
}
