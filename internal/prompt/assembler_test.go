package prompt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
	"reverie/internal/test/expect"
)

func TestMissingFilesReadAsTheirDefaults(t *testing.T) {
	w := newWorld(t, Stable)
	w.must(errors.Join(os.RemoveAll(w.path("prompts")), os.Remove(w.path("BASE_PROMPT.txt"))))
	w.tools = append(w.tools, "spawn_sub_session", "goal", "stay_silent") // the default names them
	w.restart()
	p := w.tells("Hello")
	w.expect(true, "You are Reverie, a personal assistant")
	if got := len(p.Report.Problems); got != 3 {
		t.Errorf("%d problems, want one each for the base prompt, the checks and the seed: %v", got, p.Report.Problems)
	}
	expect.Has(t, w.log.String(), "BASE_PROMPT.txt")
}

func TestPreviewPersistsNothing(t *testing.T) {
	w := newWorld(t, Stable)
	w.remembers("Ada drinks tea.")
	if got := flat(w.previews().Messages()); !strings.Contains(got, "Ada drinks tea.") || !strings.Contains(got, "Greet the person.") {
		t.Errorf("preview of a new conversation: %s", got)
	}
	w.asks("Hello")
	made := w.addTask(2, "Fix auth bug")
	answered := w.previews()
	messages := answered.Messages()
	if last := messages[len(messages)-1]; last.Role != llm.User || !strings.Contains(last.Content, made.ID) {
		t.Errorf("preview of an answered conversation ends in %+v", last)
	}
	expect.False(t, w.assembler.Commit(t.Context(), answered) == nil, "a preview was committed")
	if p := w.tells("And now?"); p.Report.Epoch.New {
		t.Error("a preview ended the epoch")
	}
	w.expect(true, made.ID) // the preview did not count as shown
}

func TestNothingToAnswerIsAnError(t *testing.T) {
	w := newWorld(t, Stable)
	if _, err := w.assembler.Assemble(t.Context(), w.turn()); err == nil {
		t.Error("assembled for an empty history")
	}
	w.says("Hello")
	w.answers("Hello.")
	if _, err := w.assembler.Assemble(t.Context(), w.turn()); err == nil {
		t.Error("assembled for an answered message")
	}
}

func TestFailedCommitChangesNothing(t *testing.T) {
	w := newWorld(t, Stable)
	w.remembers("Ada drinks tea.")
	w.says("Hello")
	p := w.assemble()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.assembler.Commit(ctx, p); err == nil {
		t.Fatal("committed although the context had ended")
	}
	expect.Equal(t, w.turn().History[0].Tail, "", "the tail was stored")
	if again := w.assemble(); flat(again.Messages()) != flat(p.Messages()) || !again.Report.Epoch.New {
		t.Errorf("the second try differs from the first:\n%s", flat(again.Messages()))
	}
}

func TestContributorsFailAlone(t *testing.T) { synctest.Test(t, contributorsFailAlone) }

func contributorsFailAlone(t *testing.T) {
	w := newWorld(t, Stable)
	contribute := func(name string, shrink section.Shrink, gather func(context.Context, *section.Question) (*section.Content, error)) {
		w.contribute(section.Contributor{Name: name, Title: name, Trust: section.Data, Shrink: shrink, Zone: section.Prefix, Keep: 10, Max: 100, Change: section.EndsEpoch, Gather: gather})
	}
	contribute("broken", section.Items, func(context.Context, *section.Question) (*section.Content, error) {
		return nil, errors.New("no such thing")
	})
	contribute("wild", section.Items, func(context.Context, *section.Question) (*section.Content, error) { panic("oops") })
	contribute("slow", section.Items, func(ctx context.Context, _ *section.Question) (*section.Content, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	forever := make(chan bool)
	defer close(forever)
	contribute("deaf", section.Items, func(context.Context, *section.Question) (*section.Content, error) { <-forever; return nil, nil })
	contribute("huge", section.TailCut, func(context.Context, *section.Question) (*section.Content, error) {
		return section.NewContent(section.Content{Source: "huge", Lines: []section.Line{{Text: strings.Repeat("much ", 2<<20)}}}), nil
	})
	w.remembers("Ada drinks tea.")
	p := w.tells("Hello")
	w.expect(true, "Ada drinks tea.", "Greet the person.")
	failed := map[string]string{}
	for _, s := range p.Report.Sections {
		if s.State == Failed {
			failed[s.ID] = s.Note
		}
	}
	want := map[string]string{"broken": "no such thing", "wild": "panic: oops", "slow": "took too long", "deaf": "took too long"}
	expect.NoDiff(t, failed, want, "failures reported")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.assembler.Assemble(ctx, w.turn()); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up: %v", err)
	}
}

// An unreadable memory file neither forgets entries nor ends the epoch, even after a restart, when
// only the epoch knows the file's lines and another file is readable.
func TestUnreadableMemory(t *testing.T) {
	w := newWorld(t, Stable)
	w.file("MEMORIES.txt", "Ada drinks tea.\n")
	w.file("memories/shared.txt", "The wifi is called Lovelace.\n")
	w.asks("Hello")
	w.must(os.Remove(w.path("MEMORIES.txt")))
	w.must(os.Mkdir(w.path("MEMORIES.txt"), 0o700))
	for range 2 {
		if reason := w.asks("And now?"); reason != "" || len(w.problems()) == 0 {
			t.Errorf("reason %q, problems %v", reason, w.problems())
		}
		w.expect(true, "Ada drinks tea.", "Lovelace")
		w.restart()
	}
	w.layout, w.last = Classic, nil // which keeps nothing from one request to the next
	w.restart()
	w.asks("And now?")
	w.expect(true, "Ada drinks tea.", "Lovelace")
	if s := w.section("memories"); len(w.problems()) == 0 || !strings.Contains(s.Note, "MEMORIES.txt") {
		t.Errorf("problems %v, %+v", w.problems(), s)
	}
}

func TestOwnDelimiterInTheBasePrompt(t *testing.T) {
	w := newWorld(t, Stable)
	w.file("BASE_PROMPT.txt", `Here is an example: <data id="k3f9" source="memories">`)
	p := w.tells("Hello")
	w.expect(true, "This section is left out")
	w.must(checkFences(flat(p.Messages()), "k3f9"))
	if s := p.Report.Sections[0]; s.State != Failed {
		t.Errorf("report %+v", s)
	}
	expect.Has(t, w.log.String(), "broke its fence", "section=core")
	expect.Lacks(t, w.log.String(), "Here is an example") // other sections hold memories
}

// A room that stops being private starts a new epoch, without private content.
func TestOtherScopesEndTheEpoch(t *testing.T) {
	w := newWorld(t, Stable)
	w.tells("Hello")
	w.remembers("Ada drinks tea.")
	w.answers("Hello.")
	w.tells("And now?")
	w.expect(true, "Ada drinks tea.")
	w.private = false
	w.answers("Well.")
	p := w.tells("Now we are three.")
	w.expect(false, "Ada drinks tea.")
	expect.Equal(t, p.Report.Epoch.Reason, "scopes changed", "reason")
}

func TestManyNewMemoriesAreFoldedIn(t *testing.T) {
	w := newWorld(t, Stable)
	w.asks("Hello")
	w.file("MEMORIES.txt", strings.Repeat("x", 1500)+"\n"+strings.Repeat("y", 1500)+"\n")
	p := w.tells("And now?")
	expect.Equal(t, p.Report.Epoch.Reason, "memories grew", "reason")
	expect.Lacks(t, p.Tail, "New memories", "yyy")
	w.expect(true, "yyy")
}

// A line in a tool result is not repeated; a line that only resembles it is.
func TestLearnedIsNotRepeated(t *testing.T) {
	w := newWorld(t, Stable)
	w.tells("Hello")
	w.callsTool("append_memory", "{}")
	w.remembers("Ada likes tea.")
	w.remembers("tea")
	w.result("Remembered:\nAda likes tea.")
	p := w.send()
	expect.False(t, strings.Contains(p.Tail, "Ada likes tea.") || !strings.Contains(p.Tail, "\ntea\n"), "tail: %s", p.Tail)
	w.answers("Yes.")
	expect.Equal(t, w.tells("And now?").Tail, "", "told again")
	w.callsTool("append_memory", "{}")
	w.remembers("Ada plays chess.")
	w.result("Remembered:\nAda plays chess.") // any of the results that are new
	w.add(history.Message{Role: llm.Tool, CallID: "call_x", Text: "done"})
	expect.Equal(t, w.send().Tail, "", "told, though a result says it")
}

func TestCapsLeaveTheOldestMemoriesOut(t *testing.T) {
	w := newWorld(t, Stable)
	w.file("MEMORIES.txt", "the very oldest\n"+manyLines(1000)+"the newest\n")
	w.file("memories/shared.txt", "what everybody knows\n")
	p := w.tells("Hello")
	w.expect(false, "the very oldest")
	w.expect(true, "the newest\n", "what everybody knows")
	w.expect(true, "older ones stand in data/MEMORIES.txt and data/memories/shared.txt")
	if len(p.Report.Oversize) != 1 || p.Report.Oversize[0].Contributor != "memories" {
		t.Errorf("oversize: %+v", p.Report.Oversize) // told once, though memories have two places
	}
	for _, s := range p.Report.Sections {
		expect.False(t, s.ID == "memories" && (s.State != Shrunk || !strings.Contains(s.Note, "of 1003 lines shown")), "report: %+v", s)
	}
}

func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("Line " + strings.Repeat("x", 40+i%20) + " number " + time.Duration(i).String() + "\n")
	}
	return b.String()
}

func TestHeader(t *testing.T) {
	w := newWorld(t, Stable)
	at := time.Date(2026, 7, 4, 22, 5, 0, 0, time.UTC).In(w.zone)
	expect.Equal(t, w.assembler.Header(at, testUser, false), "[Sun 2026-07-05 00:05 CEST]", "private")
	expect.Equal(t, w.assembler.Header(at, "@x]\n[Sat:example.org", true), "[Sun 2026-07-05 00:05 CEST, @x) (Sat:example.org]", "shared")
}

func TestReport(t *testing.T) {
	w := newWorld(t, Stable)
	first := w.tells("Hello")
	w.answers("Hello.")
	p := w.tells("And now?")
	expect.False(t, first.Report.Reused != 0 || p.Report.Reused <= 0.5 || p.Report.Reused >= 1, "reused %v, then %v", first.Report.Reused, p.Report.Reused)
	if p.Report.PrefixHash != first.Report.PrefixHash || !first.Report.Epoch.New || p.Report.Epoch.New {
		t.Errorf("reports of one epoch: %+v, %+v", first.Report, p.Report)
	}
	sum := 4 + p.Report.PrefixTokens + p.Report.History.Tokens + p.Report.TailTokens + p.Report.ToolTokens
	expect.Equal(t, p.Report.Total, sum, "total, but its parts are")
	if line := fmt.Sprint(first.Report.LogValue()); !strings.Contains(line, "new_epoch=new conversation") || strings.Contains(line, "Hello") {
		t.Errorf("log line: %s", line)
	}
	for _, text := range []string{"prefix   core", "history  3 messages", "epoch since 2026-11-21 09:14: new conversation", "window not known"} {
		expect.False(t, !strings.Contains(p.Report.String(), text), "no %q in\n%s", text, p.Report)
	}
}

// After a failed attempt the same message is sent again without repetitions, and changes since then
// follow what was sent.
func TestSendingAgain(t *testing.T) {
	w := newWorld(t, Stable)
	w.says("Hello")
	first := flat(w.send().Messages())
	expect.Equal(t, flat(w.send().Messages()), first, "the second attempt differs")
	w.remembers("Ada drinks tea.")
	p := w.send() // checks that it begins with the last one
	w.expect(true, "Ada drinks tea.")
	expect.False(t, p.Report.Epoch.New, "a new epoch for one new line")
}

// A preview between Assemble and Commit does not change what the committed prompt records as shown.
func TestPreviewBetweenAssembleAndCommit(t *testing.T) {
	w := newWorld(t, Stable)
	for range 6 {
		w.addTask(5, "something to do")
		w.says("Hello")
		p := w.assemble()
		made := w.addTask(4, "something else")
		w.previews()
		w.must(w.assembler.Commit(t.Context(), p))
		w.last = p.Messages()
		w.answers("Well.")
		w.tells("And now?")
		w.expect(true, made.ID+":")
		w.answers("Well.")
	}
}

// The reason of a new epoch is logged once it is sent.
func TestEpochsAreLogged(t *testing.T) {
	w := newWorld(t, Stable)
	w.asks("Hello")
	w.asks("Nothing new")
	w.file("MEMORIES.txt", "Ada drinks tea.\n")
	w.asks("Something new, but no epoch")
	w.file("MEMORIES.txt", "Ada drinks coffee.\n")
	w.asks("Edited")
	w.says("a preview and one that is not sent")
	w.file("SOUL.md", "An edit.")
	expect.False(t, !w.previews().Report.Epoch.New || !w.assemble().Report.Epoch.New, "no epoch would begin")
	w.must(os.Remove(w.path("SOUL.md")))
	w.room, w.last = "!other:example.org", nil
	w.asks("Hello")
	var got []string
	for _, m := range regexp.MustCompile(`msg="prompt: a new epoch" room=(\S+) reason="(.*)"`).FindAllStringSubmatch(w.log.String(), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	if want := []string{testRoom + " new conversation", testRoom + " memories edited", w.room + " new conversation"}; !slices.Equal(got, want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// An unreadable or corrupted epoch costs one new epoch.
func TestSpoiledEpoch(t *testing.T) {
	for column, reason := range map[string]string{
		"shown = '['": newConversation, `key = replace(key, 'soul=', 'gone=')`: "soul changed", `key = key || ' gone=1'`: "sources changed",
	} {
		w := newWorld(t, Stable)
		w.file("SOUL.md", "Warm.")
		w.asks("Hello")
		expect.Must(w.db.Exec(`UPDATE prompt_epoch SET ` + column))(w.t)
		w.restart()
		expect.Equal(t, w.asks("And now?"), reason, column)
		w.expect(true, "Hello")
	}
}

func TestReused(t *testing.T) {
	m := func(role llm.Role, text string) llm.Message { return llm.Message{Role: role, Content: text} }
	call := llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "task", Arguments: "{1}"}}}
	other := llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "task", Arguments: "{2}"}}}
	for _, tt := range []struct {
		last, now []llm.Message
		reused    float64
	}{
		{[]llm.Message{m(llm.System, "ab")}, nil, 0},
		{[]llm.Message{m(llm.System, "abcd")}, []llm.Message{m(llm.System, "abcd"), m(llm.User, "efgh")}, 0.5},
		{[]llm.Message{m(llm.System, "abcd"), m(llm.User, "efgh")}, []llm.Message{m(llm.System, "abcd")}, 1},
		{[]llm.Message{m(llm.System, "abcd")}, []llm.Message{m(llm.System, "abxd"), m(llm.User, "efgh")}, 0.25},
		{[]llm.Message{m(llm.System, "abcd"), m(llm.User, "efgh")}, []llm.Message{m(llm.User, "abcd"), m(llm.User, "efgh")}, 0},
		{[]llm.Message{call, m(llm.User, "abc")}, []llm.Message{other, m(llm.User, "abc")}, 0},
		{[]llm.Message{m(llm.Assistant, "abc")}, []llm.Message{{Role: llm.Assistant, Content: "abc", ToolCalls: call.ToolCalls}}, 0.3},
	} {
		expect.Equal(t, reusedShare(tt.last, tt.now), tt.reused, "%s then %s", flat(tt.last), flat(tt.now))
	}
}

// The marked part of a request is the beginning of the next one.
func TestMarks(t *testing.T) {
	w := newWorld(t, Stable)
	p := w.tells("Hello")
	expect.EqualSlice(t, p.CacheMarks(), []int{0, 1}, "marks of the first request")
	w.uses("task", "{}", "none")
	p = w.send()
	marks, before := p.CacheMarks(), p.Messages()
	expect.EqualSlice(t, marks, []int{0, 2, 3}, "marks")
	w.answers("There are none.")
	w.says("And now?")
	next := w.send().Messages()
	for _, m := range marks {
		expect.Equal(t, flat(next[:m+1]), flat(before[:m+1]), "mark %d: another request begins --- and not", m)
	}
	w = newWorld(t, Classic)
	w.says("Hello")
	if got := w.send().CacheMarks(); got != nil {
		t.Errorf("a layout that is rebuilt has the marks %v", got)
	}
}
