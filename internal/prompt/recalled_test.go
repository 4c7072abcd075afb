package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt/section"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// indexed returns a world with a backend that searches.
func indexed(t testing.TB, layout Layout) *world {
	w := newWorld(t, layout)
	w.backend = "fts5"
	w.restart()
	return w
}

// knows stores old facts of the owner, and enough others to push them out of the working set.
func (w *world) knows(texts ...string) {
	w.t.Helper()
	for i, text := range texts {
		_, _, err := w.memory.Add(w.t.Context(), memory.Entry{Scope: w.scopes()[0], Text: text, Source: memory.UserExplicit,
			ObservedAt: w.now.AddDate(0, 0, -60+i)}, testUser)
		w.must(err)
	}
	for i := range 45 {
		w.remembers(fmt.Sprintf("Filler %d concerns shelf %d of cupboard %d.", i, i*3, i*7))
	}
}

// recalledNow returns that section of the newest request.
func (w *world) recalledNow() string {
	_, tail, found := strings.Cut(w.last[len(w.last)-1].Content, "Recalled for this message:")
	if !found {
		return ""
	}
	return tail
}

// The memory that a message needs is in that very request, also when found by words only, within
// the limits.
func TestRecallForTheMessageItself(t *testing.T) {
	w := indexed(t, Stable)
	facts := []struct{ fact, question string }{
		{"Jana, Ada's sister, lives in Brno.", "In which town does my sister Jana live?"},
		{"Ada is allergic to walnuts.", "Can I eat walnuts?"}, {"The boiler was serviced by Novak Heating.", "Who serviced the boiler?"},
		{"Ada's bicycle has the frame number 88-4171.", "What is the frame number of my bicycle?"},
		{"The piano is tuned every March.", "When is the piano tuned?"}, {"Ada's favourite opera is Rusalka.", "Which opera do I like best?"},
	}
	var texts []string
	for _, f := range facts {
		texts = append(texts, f.fact)
	}
	w.knows(texts...)
	for i, f := range facts {
		w.tells(f.question)
		if strings.Contains(w.sent.Prefix, f.fact) {
			t.Fatalf("%q stands in the prefix: this test measures nothing", f.fact)
		}
		got := w.recalledNow()
		expect.False(t, !strings.Contains(got, f.fact), "turn %d: %q is not recalled for %q:\n%s", i+1, f.fact, f.question, got)
		day := time.Date(2026, 11, 21, 0, 0, 0, 0, w.zone).AddDate(0, 0, -60+i).Format(time.DateOnly)
		expect.False(t, !strings.Contains(got, "- "+day+", remembered on request: "), "turn %d: without its date %s and source:\n%s", i+1, day, got)
		if n := strings.Count(got, "\n- "); n > 12 {
			t.Errorf("turn %d: %d lines, more than %d", i+1, n, 12)
		}
		w.answers("Let me think.")
	}
}

// A recalled memory is not repeated while the model still has it.
func TestRecalledOnce(t *testing.T) {
	w := indexed(t, Stable)
	w.knows("Jana, Ada's sister, lives in Brno.")
	w.tells("Where does my sister Jana live?")
	w.expect(true, "lives in Brno")
	w.uses("read_file", `{"path":"x"}`, "nothing there")
	w.send() // in the middle of a turn
	w.answers("Somewhere.")
	w.tells("And where does Jana live, my sister?")
	if n := strings.Count(flat(w.last), "lives in Brno"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, flat(w.last))
	}
	// Nor what every prompt shows, or has just been noted.
	w.remembers("Ada's brother Petr plays the oboe.")
	w.answers("Noted.")
	w.tells("What does my brother Petr play?")
	w.expect(true, "Petr plays the oboe.")
	if n := strings.Count(flat(w.last), "Petr plays the oboe."); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, flat(w.last))
	}
}

// A good hit in the visible history does not lower the floor for others.
func TestFloorWithoutTheHistory(t *testing.T) {
	w := indexed(t, Stable)
	w.knows("Petr's oboe is made of grenadilla.")
	w.heard(history.Message{Role: llm.User, Sender: testUser, Text: "The kiln reaches 1240 degrees, says the label."}, "$kiln")
	w.send()
	w.answers("Hot.")
	w.tells("Petr, how many degrees did the label of the kiln say?")
	expect.Equal(t, w.recalledNow(), "", "recalled")
	w.answers("Ask him.")
	w.tells("What is the oboe of Petr made of?")
	expect.Has(t, w.recalledNow(), "grenadilla")
}

// With all memories in the prompt nothing is recalled.
func TestFlatFileShowsAll(t *testing.T) {
	w := newWorld(t, Stable)
	w.knows("Jana, Ada's sister, lives in Brno.")
	w.hears(w.scopes()[0], "old", "Where does my sister Jana live?", "Jana lives in Brno.")
	w.tells("Where does my sister Jana live?")
	if !strings.Contains(w.sent.Prefix, "lives in Brno") || w.recalledNow() != "" {
		t.Errorf("it reads\n%s", flat(w.last))
	}
}

func (w *world) hears(scope memory.Scope, conversation string, said ...string) {
	w.t.Helper()
	for i, text := range said {
		sender := testUser
		if i%2 == 1 {
			sender = ""
		}
		w.must(w.memory.IndexTurns(w.t.Context(), memory.Turn{Scope: scope, Event: fmt.Sprintf("$%s%d", conversation, i), Sender: sender,
			At: w.now.AddDate(0, -1, 0).Add(time.Duration(i) * time.Minute), Conversation: conversation, Seq: i + 1, Text: text, Integrity: trust.User}))
	}
}

// A hit from an earlier conversation comes with its neighbours; messages in the visible history are
// not recalled.
func TestPastTurnsAreRecalled(t *testing.T) {
	w := indexed(t, Stable)
	w.hears(w.scopes()[0], "old", "Good morning.", "It is for your aunt?", "Celadon would be the glaze for that vase.", "Good, that one then.")
	w.heard(history.Message{Role: llm.User, Sender: testUser, Text: "The kiln reaches 1240 degrees."}, "$kiln")
	w.send()
	expect.Equal(t, w.recalledNow(), "", "a message brings up itself")
	w.answers("Hot.")
	w.tells("Which celadon glaze for the vase, and what does the kiln reach?")
	got := w.recalledNow()
	for _, want := range []string{
		"- 2026-10-21, " + testUser + " said: Celadon would be the glaze for that vase.",
		"  after: 2026-10-21, you said: It is for your aunt?",
		"\n  after: 2026-10-21, you said: Good, that one then.",
	} {
		expect.Has(t, got, want)
	}
	for _, text := range []string{"It is for your aunt?", "Celadon would be", "Good, that one then."} {
		if n := strings.Count(got, text); n != 1 {
			t.Errorf("%q stands there %d times:\n%s", text, n, got)
		}
	}
	expect.Lacks(t, got, "1240 degrees")
	// In a new conversation it is past.
	w.startsNew()
	w.tells("How many degrees does the kiln reach?")
	expect.Has(t, w.recalledNow(), "1240 degrees")
}

// A group's request contains nothing private, whatever is asked.
func TestRecallKeepsScopes(t *testing.T) {
	w := indexed(t, Stable)
	w.knows("Ada's PIN hint is canary4711.")
	w.hears(memory.Private(testUser), "dm", "Remember that canary4711 is my PIN hint.", "I will keep canary4711 to myself.")
	w.hears(memory.Private("@eve:example.org"), "eve", "Ada's PIN hint is canary4711, says Eve.")
	w.hears(memory.Room("!other:example.org"), "other", "Somebody said canary4711 is the PIN hint.")
	w.tells("What is my PIN hint?")
	if got := w.recalledNow(); !strings.Contains(got, "Ada's PIN hint is canary4711.") || strings.Contains(got, "Eve") || strings.Contains(got, "Somebody") {
		t.Errorf("in her own chat:\n%s", got)
	}
	for _, layout := range Layouts() {
		w.private, w.room, w.layout = false, "!group"+string(layout)+":example.org", layout
		w.restart()
		w.last = nil
		for _, text := range []string{"What is my PIN hint?", "canary4711", "Ada's PIN hint is what? canary4711 perhaps?"} {
			w.tells(text)
			said := strings.ReplaceAll(flat(w.last), "canary4711 perhaps", "")
			if text == "What is my PIN hint?" && strings.Contains(said, "canary") || strings.Contains(said, "PIN hint is canary") || strings.Contains(said, "canary4711 is") {
				t.Errorf("%s: a private fact is in a group's request:\n%s", layout, said)
			}
			w.answers("I do not know.")
		}
	}
}

// A failed search costs only its section.
// Holds W10.
func TestRecallThatFails(t *testing.T) {
	w := indexed(t, Stable)
	w.knows("Jana, Ada's sister, lives in Brno.")
	expect.Must(w.db.Exec(`DROP TABLE index_term`))(w.t)
	w.tells("Where does my sister Jana live?")
	w.expect(false, "lives in Brno")
	found := false
	for _, p := range w.sent.Report.Problems {
		found = found || strings.HasPrefix(p.Text, "recalled: search")
	}
	expect.False(t, !found, "the report does not tell: %+v", w.sent.Report.Problems)
}

// Smaller tiers recall less.
func TestRecallBudget(t *testing.T) {
	for _, tt := range []struct{ tier, most, hits int }{{1, 300, 3}, {2, 600, 6}, {5, 1500, 12}} {
		w := indexed(t, Stable)
		var texts []string
		for i := range 40 {
			texts = append(texts, fmt.Sprintf("Ada's telescope log, night %d: %s", i, strings.Repeat("clear sky over the meadow ", 8)))
		}
		w.knows(texts...)
		w.tier = tt.tier
		p := w.tells("What does my telescope log say about the clear sky?")
		n := 0
		for _, s := range p.Report.Sections {
			if s.ID == "recalled" {
				n = s.Tokens
			}
		}
		if n == 0 || n > tt.most+60 { // lead and fence
			t.Errorf("tier %d: %d tokens, want 1 to %d", tt.tier, n, tt.most)
		}
		if hits := strings.Count(w.recalledNow(), "\n- "); hits == 0 || hits > tt.hits {
			t.Errorf("tier %d: %d lines, want 1 to %d", tt.tier, hits, tt.hits)
		}
	}
}

// Other layouts with memories show recalled ones beside them.
func TestRecallInOtherLayouts(t *testing.T) {
	for _, layout := range []Layout{Classic, split, layered, phased} {
		w := indexed(t, layout)
		w.knows("Jana, Ada's sister, lives in Brno.")
		w.remembers("Jana the sister of Ada has a cat.")
		w.tells("Where does my sister Jana live?")
		if !strings.Contains(w.sent.Prefix, "# Recalled for this message\n") || !strings.Contains(w.sent.Prefix, "lives in Brno.") {
			t.Errorf("%s:\n%s", layout, w.sent.Prefix)
		}
		if n := strings.Count(w.sent.Prefix, "has a cat."); n != 1 {
			t.Errorf("%s: what all memories show is said %d times:\n%s", layout, n, w.sent.Prefix)
		}
	}
}

// An entry that leaves the working set ends no epoch, and the prefix stays.
// Holds P4.
func TestReuseWithRecall(t *testing.T) {
	w := indexed(t, Stable)
	w.knows("Jana, Ada's sister, lives in Brno.")
	shares, epochs := reuse(w)
	mean := 0.0
	for _, s := range shares {
		mean += s / float64(len(shares))
	}
	t.Logf("mean %.4f; %d epochs", mean, epochs)
	expect.False(t, mean < .98 || epochs > 3, "mean %.4f, %d epochs", mean, epochs)
}

// What the prefix shows is removed from it when the entry is retired, also if that has left the working set since.
func TestRetiredOutsideTheWorkingSet(t *testing.T) {
	const fact = "Ada's locker is number 12."
	w := indexed(t, Stable)
	old, _, err := w.memory.Add(t.Context(), memory.Entry{Scope: w.scopes()[0], Text: fact, Source: memory.UserExplicit}, testUser)
	expect.OK(t, err)
	expect.False(t, !strings.Contains(w.tells("Hello!").Prefix, fact), "the prefix lacks it")
	w.answers("Hello.")
	w.knows()
	p := w.tells("Go on.")
	expect.False(t, p.Report.Epoch.New || !strings.Contains(p.Prefix, fact), "a new epoch: %q", p.Report.Epoch.Reason)
	w.answers("I do.")
	expect.Must(w.db.Exec(`UPDATE memory SET state = 'archived' WHERE id = ?`, old.ID))(t)
	p = w.tells("And now?")
	expect.Equal(t, p.Report.Epoch.Reason, "memories edited", "a new epoch")
	expect.False(t, strings.Contains(p.Prefix, fact), "the prefix still has it")
}

// heard adds a message that memory has indexed, as the session does.
func (w *world) heard(m history.Message, event string) {
	w.t.Helper()
	m.EventID = event
	m = w.add(m)
	w.must(w.memory.IndexTurns(w.t.Context(), memory.Turn{Scope: w.scopes()[0], Event: event, Sender: m.Sender,
		At: w.now, Conversation: w.room, Seq: int(m.ID), Text: m.Text}))
}

// TestRecallPointsBack: a question without content words refers to the last answer, in any
// language.
func TestRecallPointsBack(t *testing.T) {
	for _, tt := range []struct{ language, fact, answer, question string }{
		{"English", "Ada's passport lies in the blue box on the shelf.", "Do you mean your passport?", "Yes, where did I put it?"},
		{"English, short", "Ada's passport lies in the blue box on the shelf.", "There are two papers of yours that I know. Do you mean your passport?", "Yes, exactly."},
		{"English, no question before", "Ada's passport lies in the blue box on the shelf.", "Then do not forget your passport.", "And where is it?"},
		{"German", "Adas Reisepass liegt in der blauen Schachtel.", "Meinst du deinen Reisepass?", "Ja genau, wo ist der?"},
		{"French", "Le passeport d'Ada est dans la boîte bleue.", "Tu veux dire ton passeport ?", "Oui, où est-il ?"},
		{"Spanish", "El pasaporte de Ada está en la caja azul.", "¿Te refieres a tu pasaporte?", "Sí, ¿dónde está?"},
		{"a long answer", "Ada's passport lies in the blue box on the shelf.", strings.Repeat("There is much to say about trains, ships and harbours. ", 20) + "Do you mean your passport?", "Yes, where did I put it?"},
		{"Chinese, a long answer", "小雅的护照放在蓝色盒子里。", strings.Repeat("火车船只港口都有很多可以讨论的内容。", 20) + "你是说护照吗？", "是的，在哪里？"},
		{"Chinese", "小雅的护照放在蓝色盒子里。", "你是说护照吗？", "是的，在哪里？"},
		// And a question that says itself what it is about, with nothing before it.
		{"German, alone", "Adas Schwester Jana wohnt in Brünn.", "", "Wo wohnt eigentlich meine Schwester Jana?"},
		{"Portuguese, alone", "A irmã da Ada trabalha no hospital de Évora.", "", "Onde trabalha a minha irmã?"},
		{"Russian, alone", "Сестра Ады работает в больнице Казани.", "", "Где работает моя сестра?"},
		{"Chinese, alone", "小雅的妹妹住在成都的春熙路。", "", "我妹妹住在哪里？"},
	} {
		t.Run(tt.language, func(t *testing.T) {
			w := indexed(t, Stable)
			w.knows(tt.fact)
			if tt.answer != "" {
				w.tells("Hi there!")
				w.heard(history.Message{Role: llm.Assistant, Text: tt.answer}, "$answer")
			}
			w.tells(tt.question)
			if strings.Contains(w.sent.Prefix, tt.fact) {
				t.Fatal("it stands in the prefix: this test measures nothing")
			}
			expect.False(t, !strings.Contains(w.recalledNow(), tt.fact), "%q after %q does not recall %q:\n%s", tt.question, tt.answer, tt.fact, w.recalledNow())
		})
	}
}

// TestRecallDoesNotPointBack: thanks after an answer recall nothing, and a question with content
// words is searched by them.
func TestRecallDoesNotPointBack(t *testing.T) {
	w := indexed(t, Stable)
	w.knows("Ada's passport lies in the blue box on the shelf.", "Ada is allergic to walnuts.")
	for _, text := range []string{"Hi there!", "Thanks, that is great.", "ok 👍", "No, thanks!", "Danke, super!", "How do quasars emit radiation?", "Do walnuts, quasars and pulsars glow?"} {
		w.tells(text)
		expect.Equal(t, w.recalledNow(), "", "%q brought up", text)
		w.answers("I have noted what you say about your passport. Anything else?")
	}
}

// template renders a request as a local server reads it: ChatML, open for the answer.
func template(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "<|im_start|>%s\n%s", m.Role, m.Content)
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", c.Name, c.Arguments)
		}
		b.WriteString("<|im_end|>\n")
	}
	return b.String() + "<|im_start|>assistant\n"
}

// reuse plays a hundred turns: a memory every third, a task every fourth, a tool every fifth, a
// goal whose steps change, and 90 seconds between messages. For each request after the first it
// returns the share of the previous one that it repeats as its beginning, and whether an epoch
// began.
func reuse(w *world) (shares []float64, epochs int) {
	w.file("MEMORIES.txt", manyLines(40))
	for i := range 10 {
		w.file(fmt.Sprintf("skills/skill%02d.md", i), "# How to do one thing or another\n")
	}
	w.window = 64_000
	w.goal = []string{"Ship the release."}
	before := ""
	send := func() {
		p := w.send()
		now := template(p.Messages())
		switch {
		case before != "" && p.Report.Epoch.New:
			epochs++
		case before != "":
			shares = append(shares, float64(commonPrefix(before, now))/float64(len(before)))
		}
		before = now
	}
	for turn := range 100 {
		w.now = w.now.Add(90 * time.Second)
		if turn%3 == 0 {
			w.remembers(fmt.Sprintf("Fact %d: Ada likes number %d.", turn, turn))
		}
		if turn%4 == 0 {
			w.addTask(1+turn%9, fmt.Sprintf("Do the thing of turn %d", turn))
		}
		if turn%8 == 7 {
			expect.Must(w.tasks.Complete(w.t.Context(), w.caller(), fmt.Sprintf("task_%d", w.numbered), "it is done"))(w.t)
		}
		if turn%6 == 0 {
			w.steps = []string{fmt.Sprintf("🔄 step %d", turn)}
		}
		w.says(fmt.Sprintf("Question %d: what about the thing that we talked about, and how does it go on from here?", turn))
		send()
		if turn%5 == 0 {
			w.uses("read_file", `{"path":"data/skills/skill01.md"}`, strings.Repeat("the file says so. ", 20))
			send()
			w.callsTool("append_memory", `{"entry":"x"}`)
			w.remembers(fmt.Sprintf("Learned in turn %d.", turn))
			w.result(fmt.Sprintf("Remembered: Learned in turn %d.", turn))
			send()
		}
		w.answers(fmt.Sprintf("Answer %d: it goes on like this, step by step, as far as anybody can tell today.", turn))
	}
	return shares, epochs
}

// A local server's prompt cache stays useful: within an epoch a request begins with nearly all of
// the previous one.
func TestReuse(t *testing.T) {
	shares, epochs := reuse(newWorld(t, Stable))
	mean := 0.0
	for _, s := range shares {
		mean += s / float64(len(shares))
	}
	slices.Sort(shares)
	t.Logf("stable: mean %.4f, median %.4f, least %.4f of %d requests; %d epochs", mean, shares[len(shares)/2], shares[0], len(shares), epochs)
	expect.False(t, mean < 0.98 || shares[len(shares)/2] < 0.99, "too little of the request before is reused: mean %.4f, median %.4f", mean, shares[len(shares)/2])
	expect.False(t, epochs > 3, "%d epochs began in 100 turns of an afternoon", epochs)
	// The same conversation in a layout with the clock before the history.
	other, _ := reuse(newWorld(t, Classic))
	slices.Sort(other)
	t.Logf("classic: median %.4f", other[len(other)/2])
	expect.False(t, other[len(other)/2] > 0.5, "classic reuses %.4f: this test measures nothing", other[len(other)/2])
}

// TestProgramsComeAndGo: in 50 turns connected programs come, change and go. No epoch ends for that, and
// a request repeats nearly all of the one before. The texts that a program has for the model are in the
// prefix; they begin an epoch.
func TestProgramsComeAndGo(t *testing.T) {
	w := newWorld(t, Stable)
	w.window, w.tools = 64_000, append(w.tools, "call_tool")
	w.file("MEMORIES.txt", manyLines(40))
	before, sum, n := "", 0.0, 0
	for turn := range 50 {
		w.programs = nil
		for i := range turn % 4 {
			w.programs = append(w.programs, section.Program{Name: fmt.Sprint("p", i), Tools: []section.ProgramTool{
				{Name: fmt.Sprintf("p%d.tool%d", i, turn%3), Summary: "Does one thing or another."}}})
		}
		w.says(fmt.Sprintf("Question %d: what about the thing that we talked about, and how does it go on from here?", turn))
		p := w.send()
		expect.False(t, before != "" && p.Report.Epoch.New, "turn %d begins an epoch: %s", turn, p.Report.Epoch.Reason)
		shown := strings.Contains(flat(p.Messages()[len(p.Messages())-1:]), fmt.Sprintf("p0.tool%d", turn%3))
		expect.False(t, shown != (turn%4 > 0), "turn %d: shown %v", turn, shown)
		now := template(p.Messages())
		if before != "" {
			sum, n = sum+float64(commonPrefix(before, now))/float64(len(before)), n+1
		}
		before = now
		w.answers(fmt.Sprintf("Answer %d: it goes on like this, step by step, as far as anybody can tell today.", turn))
	}
	t.Logf("mean %.4f of %d requests", sum/float64(n), n)
	expect.False(t, sum/float64(n) < 0.99, "too little of the request before is reused: mean %.4f", sum/float64(n))
	w.programs = []section.Program{{Name: "p", Prompts: []string{"Titles are short."}}}
	p := w.tells("And now?")
	expect.False(t, !p.Report.Epoch.New || !strings.Contains(p.Prefix, "p: Titles are short."), "the program's note is not in the prefix")
}

// A standing wish comes up whatever the message is about, and only once.
func TestWishesAreRecalled(t *testing.T) {
	w := indexed(t, Stable)
	w.hears(w.scopes()[0], "old", "I can't stand big hotels.", "I see.", "The kiln is blue.", "Nice.")
	w.tells("Where should we stay in Lisbon?")
	got := w.recalledNow()
	expect.Has(t, got, "- wish: 2026-10-21, ada: I can't stand big hotels.")
	expect.Has(t, got, "Follow a wish where it applies")
	expect.Lacks(t, got, "kiln")
	w.send()
	w.answers("At Ana's.")
	w.tells("And in Porto?")
	expect.Lacks(t, w.recalledNow(), "big hotels")
}

// A question that collects gets all that was said of it, one short line each, the oldest first.
func TestCollectedByTime(t *testing.T) {
	w := indexed(t, Stable)
	var said []string
	for i := range 30 {
		said = append(said, fmt.Sprintf("I fired the kiln, batch %d, with %s.", i+1, strings.Repeat("many bowls and ", 20)), "Good.")
	}
	w.hears(w.scopes()[0], "old", said...)
	w.tells("In what order did I fire the batches in the kiln?")
	got := w.recalledNow()
	lines := strings.Count(got, "\n- ")
	expect.Equal(t, lines >= 25, true, fmt.Sprint(lines, " lines"))
	expect.Equal(t, strings.Index(got, "batch 11") < strings.Index(got, "batch 29"), true, "the oldest first")
}
