package compact_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"reverie/internal/history"
	"reverie/internal/history/compact"
	"reverie/internal/llm"
	"reverie/internal/test/expect"
)

const here = "!here:example.org"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC)

func TestDetails(t *testing.T) {
	for _, tt := range []struct {
		name, summary string
		before        []string
		said          []string
		most          int
		want          string
		earlier       string
	}{
		{"codes and numbers", "They spoke of the flat.", nil, []string{"u Hello there. The door code is 4711-K. How are you?", "a Fine. I noted it."}, 100, "ada: The door code is 4711-K.", ""},
		{"what the summary has", "The code of the door is 4711-K.", nil, []string{"u The door code is 4711-K."}, 100, "", ""},
		{"a number alone says nothing", "They paid 17 dollars.", nil, []string{"u My locker is 17."}, 100, "ada: My locker is 17.", ""},
		{"a number in another", "The locker room has 417 shelves.", nil, []string{"u My locker is 17."}, 100, "ada: My locker is 17.", ""},
		{"addresses, paths, names", "Nothing.", nil, []string{"u see https://example.org/a?b=c for it", "u it is in /etc/hosts or so", "u ask Jana about it", "u nothing here at all"}, 100,
			"ada: see https://example.org/a?b=c for it|ada: it is in /etc/hosts or so|ada: ask Jana about it", ""},
		{"decisions are kept first", "Nothing.", nil, []string{"u DECISION_LOCKED: we ship on a friday", "u The door code is 4711-K."}, 16, "ada: DECISION_LOCKED: we ship on a friday", ""},
		{"the newest is kept, in the order it was said", "Nothing.", []string{"ada: my first car was a T4"}, []string{"u my second car was a T5", "u my third car was a T6"}, 26, "ada: my second car was a T5|ada: my third car was a T6", ""},
		{"earlier ones are kept", "Nothing.", []string{"ada: my first car was a T4"}, []string{"u yes"}, 34, "ada: my first car was a T4", ""},
		{"said twice", "Nothing.", []string{"ada: The door code is 4711-K."}, []string{"u The door code is 4711-K."}, 100, "ada: The door code is 4711-K.", ""},
		{"tools last, and not many", "Nothing.", nil, []string{"u look", "c1 ", "r1 port 8080 is open\nport 8081 is open\nport 8082 is open", "u my port is 22"}, 50, "tool: port 8082 is open|ada: my port is 22", ""},
		{"of the earlier summary", "Nothing.", []string{"ada: yes, on 12 May"}, []string{"u yes"}, 100, "Ada has the code 4711-K.|ada: yes, on 12 May", "They met. Ada has the code 4711-K."},
		{"codes before numbers", "Nothing.", nil, []string{"u The code is 4711-K.", "u I am 42."}, 14, "ada: The code is 4711-K.", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(compact.Details(talk(tt.said...), history.Compaction{Summary: tt.earlier, Details: tt.before}, tt.summary, tt.most), "|"); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Holds L10.
func TestCheckSummary(t *testing.T) {
	source := "ada: I like tea, and would like some more of it now.\nassistant: Here you are."
	for text, ok := range map[string]bool{
		"Ada likes tea, and got some.":     true,
		"Ada mag Tee; 茶はおいしいと言った。もっと飲みたい。": true,
		"Tea.":    false,
		"   \n  ": false,
		"I like tea,  and would like some more of it now.":               false, // an echo
		strings.Repeat("Ada likes tea. ", 25):                            false, // in circles
		"<html><body>502 Bad Gateway from the server</body>":             false,
		"{[}{]}{[}{]}{[}{]}{[}{]}{[}{]}{[}{]}":                           false,
		"Ada likes " + strings.Repeat("\xff\xff\xff", 20):                false,
		"Ada said: " + strings.Join(strings.Split(words(400), ","), " "): false, // too long
	} {
		if err := compact.Check(text, source, 100); (err == nil) != ok {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// words is n different words.
func words(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(string(rune('a'+i%26)), 1+i/26) + ",")
	}
	return b.String()
}

func TestExtract(t *testing.T) {
	said := talk("u I have a dog\nand more", "u I have a dog", "a nice", "c1 ", "r1 x", "u I have a cat", "a nice")
	expect.Equal(t, compact.SummaryWithoutModel("Before.", said, 200), "Before.\n\nSaid since, in short:\n- ada: I have a dog\n- ada: I have a cat", "got")
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf("u I have %d dogs ", i)+strings.Repeat("and ", 50))
	}
	if got, want := compact.SummaryWithoutModel("Before.\n\nSaid since, in short:\n- (earlier messages are not listed)\n- ada: I have a dog", talk("u I have a cat"), 200),
		"Before.\n\n- ada: I have a dog\n\nSaid since, in short:\n- ada: I have a cat"; got != want {
		t.Errorf("after another extract: %q", got)
	}
	got := compact.SummaryWithoutModel(strings.Repeat("Before.\n", 500), talk(many...), 300)
	if n := llm.EstimateTokens(got); n > 300 || n < 150 || !strings.Contains(got, "earlier messages are not listed") || !strings.Contains(got, "Before.") {
		t.Errorf("%d tokens: %s", n, got)
	}
	expect.Equal(t, compact.SummaryWithoutModel("Before.", talk("c1 ", "r1 x"), 100), "Before.", "without anything new")
	if compact.SummaryWithoutModel("", talk("c1 ", "r1 x"), 100) == "" {
		t.Error("nothing at all is left of it")
	}
}

func TestTranscript(t *testing.T) {
	all := talk("u hello", "c1 ", "r1 "+strings.Repeat("word ", 5000), "a done")
	all[0].Header = "[Sat 12:00]"
	got := compact.Transcript(all, 500)
	if n := llm.EstimateTokens(got); n > 500 {
		t.Errorf("%d tokens", n)
	}
	for _, want := range []string{"ada [Sat 12:00]: hello\n", "assistant calls read_file: {\"path\":\"a.txt\"}\n", "tool: word word", "characters left out here", "assistant: done"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// talk makes a conversation of lines: "u …" a person says, "a …" the model answers,
// "c1,c2 …" it calls tools, "r1 …" is the result of the call 1.
func talk(lines ...string) []history.Message {
	var out []history.Message
	for i, l := range lines {
		who, text, _ := strings.Cut(l, " ")
		m := history.Message{ID: int64(i + 1), Room: here, Conversation: 1, Text: text, At: noon}
		switch who[0] {
		case 'u':
			m.Role, m.Sender = llm.User, "@ada:x"
		case 'a':
			m.Role = llm.Assistant
		case 'c':
			m.Role = llm.Assistant
			for id := range strings.SplitSeq(who, ",") {
				m.Calls = append(m.Calls, llm.ToolCall{ID: id[1:], Name: "read_file", Arguments: `{"path":"a.txt"}`})
			}
		case 'r':
			m.Role, m.CallID = llm.Tool, who[1:]
		}
		out = append(out, m)
	}
	return out
}

func steps(p compact.Plan) string {
	return fmt.Sprintf("%d shortened, %d summarised", len(p.Shortened), len(p.Removed))
}

func ids(all []history.Message) string {
	var out []string
	for _, m := range all {
		out = append(out, fmt.Sprint(m.ID))
	}
	return strings.Join(out, " ")
}

// What fits is left as it is; what does not goes through the steps, the mildest first.
func TestCompactSteps(t *testing.T) {
	long := strings.Repeat("line of a file\n", 500) // 7,500 characters, 1,800 tokens
	old := []string{"u look", "c1 ", "r1 " + long, "c2 ", "r2 " + long, "a seen", "u and", "c3 ", "r3 " + long, "c4 ", "r4 " + long, "c5 ", "r5 " + long, "a seen too"}
	all := talk(append(old, "u now", "a well", "u so?")...)

	t.Run("micro is enough", func(t *testing.T) {
		p := compact.NewPlan(all, compact.Limits{Room: 15_000, Summary: 500})
		if got := steps(p); got != "2 shortened, 0 summarised" { // the newest three stay
			t.Errorf("steps: %s", got)
		}
		if want := `[read_file {"path":"a.txt"}: 500 lines, ok. Cleared to save room; call it again if it is needed.]`; p.Kept[2].Text != want {
			t.Errorf("cleared: %s", p.Kept[2].Text)
		}
		expect.Equal(t, all[2].Text, long, "the conversation given was changed")
		expect.Equal(t, ids(p.Shortened), "3 5", "shortened")
	})
	t.Run("full", func(t *testing.T) {
		var lines []string
		for i := range 20 {
			lines = append(lines, fmt.Sprintf("u question %d %s", i, strings.Repeat("word ", 40)), "a answer "+strings.Repeat("word ", 40))
		}
		lines = append(lines, "u so?")
		p := compact.NewPlan(talk(lines...), compact.Limits{Room: 2000, Summary: 400})
		if steps(p) != "0 shortened, 32 summarised" || ids(p.Kept) != "33 34 35 36 37 38 39 40 41" { // ten would begin with an answer
			t.Errorf("%s; kept %s", steps(p), ids(p.Kept))
		}
		if p.After > 2000*60/100 {
			t.Errorf("%d tokens afterwards", p.After)
		}
		p = compact.NewPlan(talk(lines...), compact.Limits{Room: 1000, Summary: 300})
		expect.Equal(t, ids(p.Kept), "39 40 41", "kept")
		p = compact.NewPlan(talk(lines...), compact.Limits{Room: 500, Summary: 200})
		expect.Equal(t, ids(p.Kept), "41", "kept")
	})
	t.Run("the newest round stays", func(t *testing.T) {
		long := strings.Repeat("word ", 300)
		p := compact.NewPlan(talk("u look", "c1 "+long, "r1 x", "c2 "+long, "r2 x", "c3,4,5,6 ", "r3 x", "r4 x", "r5 x", "r6 "+long), compact.Limits{Room: 700, Summary: 200})
		if ids(p.Kept) != "1 6 7 8 9 10" || ids(p.Removed) != "2 3 4 5" {
			t.Errorf("kept %s, gone %s", ids(p.Kept), ids(p.Removed))
		}
		if last := p.Kept[len(p.Kept)-1].Text; !strings.Contains(last, "characters left out") || p.After > 700 {
			t.Errorf("%d tokens; the last one reads %.200s", p.After, last)
		}
	})
	t.Run("within a turn", func(t *testing.T) {
		p := compact.NewPlan(talk("u one", "a two", "u look", "u at these", "c1 "+strings.Repeat("word ", 300), "r1 x", "c2 "+strings.Repeat("word ", 300), "r2 x", "c3,4 ", "r3 x", "r4 y"), compact.Limits{Room: 600, Summary: 100})
		if ids(p.Kept) != "3 4 9 10 11" || ids(p.Removed) != "1 2 5 6 7 8" {
			t.Errorf("kept %s, gone %s", ids(p.Kept), ids(p.Removed))
		}
	})
}

// TestCompactAny: whatever was said, and however small the room, what is left fits, is a
// conversation that an API takes, and holds the person's newest message.
func TestCompactAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		past := anyTalk(t)
		l := compact.Limits{Room: rapid.IntRange(1000, 20_000).Draw(t, "room"), Full: rapid.Bool().Draw(t, "full")}
		l.Summary = l.Room * 35 / 100
		copied := slices.Clone(past)
		p := compact.NewPlan(past, l)
		if !cmp.Equal(past, copied) {
			t.Fatal("the conversation given was changed")
		}
		if p.After > l.Room {
			t.Fatalf("%d tokens afterwards, and room for %d; %s", p.After, l.Room, steps(p))
		}
		checkAPI(t, p.Kept)
		newest := past[0]
		for _, m := range past {
			if m.Role == llm.User {
				newest = m
			}
		}
		at := slices.IndexFunc(p.Kept, func(m history.Message) bool { return m.ID == newest.ID })
		if at < 0 {
			t.Fatalf("message %d is the person's newest, and gone; kept %s", newest.ID, ids(p.Kept))
		}
		if said := p.Kept[at].Text; len(newest.Text) < 200 && said != newest.Text || !strings.HasPrefix(newest.Text, said[:min(4, len(said))]) {
			t.Fatalf("the newest message became %.100q", said)
		}
		for _, m := range p.Kept {
			if m.Role == llm.Assistant && m.Text != past[m.ID-1].Text {
				t.Fatalf("an answer became %.100q", m.Text)
			}
		}
		if len(p.Kept)+len(p.Removed) != len(past) {
			t.Fatalf("%d stay and %d go, of %d", len(p.Kept), len(p.Removed), len(past))
		}
		for _, m := range p.Removed {
			if !cmp.Equal(m, past[m.ID-1]) {
				t.Fatal("what is to be summarised is not what was said")
			}
		}
	})
}

// anyTalk is any conversation that a session can have before a request.
func anyTalk(t *rapid.T) []history.Message {
	size := rapid.SampledFrom([]int{1, 8, 60, 400, 5_000, 40_000})
	alphabet := rapid.SampledFrom([]string{"word ", "x", "4711 ", "茶", "{\"a\":1}\n", "\xff", "line\n"})
	text := func(name string) string {
		return name + " " + strings.Repeat(alphabet.Draw(t, "of"), size.Draw(t, "size"))
	}
	var lines []string
	call := 0
	for turn := range rapid.IntRange(1, 12).Draw(t, "turns") {
		for range rapid.IntRange(1, 3).Draw(t, "burst") {
			lines = append(lines, text("u said"))
		}
		last := turn
		for range rapid.IntRange(0, 4).Draw(t, "rounds") {
			n := rapid.IntRange(1, 4).Draw(t, "calls")
			var names, results []string
			for range n {
				call++
				names = append(names, fmt.Sprintf("c%d", call))
				results = append(results, text(fmt.Sprintf("r%d result", call)))
			}
			lines = append(append(lines, strings.Join(names, ",")+" "), results...)
			last = -1
		}
		if last >= 0 || rapid.Bool().Draw(t, "answered") {
			lines = append(lines, "a "+strings.Repeat("answer ", rapid.IntRange(1, 40).Draw(t, "answer")))
		}
	}
	if rapid.Bool().Draw(t, "asks") {
		lines = append(lines, text("u said"))
	}
	return talk(lines...)
}

type fataler interface{ Fatalf(string, ...any) }

// checkAPI fails unless a chat API takes the messages: a person begins, each result
// stands behind its call, each call has its result, and no two answers follow one another.
func checkAPI(t fataler, all []history.Message) {
	if len(all) == 0 || all[0].Role != llm.User {
		t.Fatalf("no person begins: %s", ids(all))
	}
	open := map[string]bool{}
	for i, m := range all {
		if m.Role == llm.Tool {
			if !open[m.CallID] {
				t.Fatalf("the result %d stands without its call", m.ID)
			}
			delete(open, m.CallID)
			continue
		}
		if len(open) > 0 {
			t.Fatalf("before message %d there are calls without results", m.ID)
		}
		if m.Role == llm.Assistant && all[i-1].Role == llm.Assistant {
			t.Fatalf("two answers in a row: %s", ids(all))
		}
		for _, c := range m.Calls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls without results at the end")
	}
}
