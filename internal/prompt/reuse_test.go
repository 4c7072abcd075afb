package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/llm"
)

// template is a request as a local server reads it: ChatML, open for the answer.
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

// reuse plays a hundred turns: a memory every third, a task every fourth, a tool
// every fifth, a goal whose steps move, and a minute and a half between two messages.
// It returns, for each request but the first, the share of the one before that it
// begins with, and whether an epoch began.
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
			shares = append(shares, float64(common(before, now))/float64(len(before)))
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
			_, err := w.tasks.Complete(w.t.Context(), w.caller(), fmt.Sprintf("task_%d", w.numbered), "it is done")
			w.must(err)
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

// A local server that keeps its last prompt need not read it again: within an epoch
// a request begins with the one before, nearly all of it.
func TestReuse(t *testing.T) {
	shares, epochs := reuse(newWorld(t, Stable))
	mean := 0.0
	for _, s := range shares {
		mean += s / float64(len(shares))
	}
	slices.Sort(shares)
	t.Logf("stable: mean %.4f, median %.4f, least %.4f of %d requests; %d epochs", mean, shares[len(shares)/2], shares[0], len(shares), epochs)
	if mean < 0.98 || shares[len(shares)/2] < 0.99 {
		t.Errorf("too little of the request before is reused: mean %.4f, median %.4f", mean, shares[len(shares)/2])
	}
	if epochs > 3 {
		t.Errorf("%d epochs began in 100 turns of an afternoon", epochs)
	}
	// The same conversation in a layout with the clock before the history.
	other, _ := reuse(newWorld(t, Classic))
	slices.Sort(other)
	t.Logf("classic: median %.4f", other[len(other)/2])
	if other[len(other)/2] > 0.5 {
		t.Errorf("classic reuses %.4f: this test measures nothing", other[len(other)/2])
	}
}
