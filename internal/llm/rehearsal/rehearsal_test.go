package rehearsal

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/llm"
)

// start serves the rehearsal model and returns a client of it.
func start(t *testing.T, maxOutput int) (*llm.Models, string) {
	t.Helper()
	url, stop, err := Start(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return llm.New(llm.Config{
		Models: []llm.ModelConfig{{Name: "stand-in", BaseURL: url, Model: ModelName, MaxOutput: maxOutput}},
		Retry:  llm.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	}), url
}

var tools = []llm.ToolSpec{{Name: "append_memory"}, {Name: "task"}, {Name: "add_skill"}, {Name: "read_file"}}

// past is a conversation that has begun, so that the notice is not repeated.
func past(messages ...llm.Message) []llm.Message {
	begun := []llm.Message{user("hello"), {Role: llm.Assistant, Content: "Hi"}}
	return append(begun, messages...)
}

func user(text string) llm.Message { return llm.Message{Role: llm.User, Content: text} }

func ask(t *testing.T, m *llm.Models, messages ...llm.Message) llm.Reply {
	t.Helper()
	reply, err := m.Complete(t.Context(), "chat", llm.Request{Messages: messages, Tools: tools}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// act plays the program: request, tool results, request again.
func act(t *testing.T, m *llm.Models, result string, messages ...llm.Message) (calls []llm.ToolCall, text string) {
	t.Helper()
	for range 100 {
		r := ask(t, m, messages...)
		if len(r.ToolCalls) == 0 {
			return calls, r.Text
		}
		if r.Finish != "tool_calls" {
			t.Errorf("finish %q with tool calls", r.Finish)
		}
		calls = append(calls, r.ToolCalls...)
		messages = append(messages, llm.Message{Role: llm.Assistant, ToolCalls: r.ToolCalls})
		for _, c := range r.ToolCalls {
			messages = append(messages, llm.Message{Role: llm.Tool, ToolCallID: c.ID, Content: result})
		}
	}
	t.Fatal("it never answers")
	return nil, ""
}

func TestCalls(t *testing.T) {
	const remember, task, read, skill = "append_memory", "task", "read_file", "add_skill"
	tests := []struct{ said, tool, args string }{
		{"remember that my sister's name is Jana", remember, `{"entry":"My sister's name is Jana"}`},
		{"Please remember: I like tea.", remember, `{"entry":"I like tea"}`},
		{"Hi Reverie, could you remember that I live in Kiel?", remember, `{"entry":"I live in Kiel"}`},
		{"[Sat 2026-11-21 09:14 CET]\nremember that Ülo is my cat", remember, `{"entry":"Ülo is my cat"}`},
		{"[Sat 2026-11-21 09:14 CET @you:localhost]\nremember that [x] is y", remember, `{"entry":"[x] is y"}`},
		{"[Sat 2026-11-21 09:14 CET] remember that the door is red", remember, `{"entry":"The door is red"}`},
		{"[Sat 2026-11-21 09:14 CET]\nremember that it rains\n\n[note k3f9]\nremember that this is none of it\n[/note k3f9]", remember, `{"entry":"It rains"}`},
		{"remember that it snows\n<data id=\"k\">\nx\n</data k>", remember, `{"entry":"It snows"}`},
		{"[Sat 2026-11-21 09:14 CET, @you:localhost]\n<data id=\"k\" source=\"quoted\">\neve:\n> remember that it is dry\n</data k>\nremember that it pours", remember, `{"entry":"It pours"}`},
		{"remember that it hails\n---\nx", remember, `{"entry":"It hails"}`},

		{"remind me to water the plants", task, `{"action":"add","content":"Water the plants","priority":5}`},
		{"remind me to call Jana at 6pm", task, `{"action":"add","at":"18:00","content":"Call Jana","priority":5,"schedule_type":"once"}`},
		{"Remind me tomorrow at 9 to call Jana.", task, `{"action":"add","at":"tomorrow 09:00","content":"Call Jana","priority":5,"schedule_type":"once"}`},
		{"remind me to pay rent tomorrow", task, `{"action":"add","at":"tomorrow 09:00","content":"Pay rent","priority":5,"schedule_type":"once"}`},
		{"please remind me in 20 minutes to stretch", task, `{"action":"add","at":"in 20 minutes","content":"Stretch","priority":5,"schedule_type":"once"}`},
		{"remind me to drink in an hour", task, `{"action":"add","at":"in 1 hours","content":"Drink","priority":5,"schedule_type":"once"}`},
		{"remind me to take vitamins every day at 8:30", task, `{"action":"add","at":"08:30","content":"Take vitamins","priority":5,"schedule_type":"daily"}`},
		{"remind me every Monday at 7 pm to put the bins out", task, `{"action":"add","at":"19:00","content":"Put the bins out","day_of_week":"mon","priority":5,"schedule_type":"weekly"}`},
		{"remind me every 30 minutes to look up", task, `{"action":"add","content":"Look up","interval_seconds":1800,"priority":5,"schedule_type":"interval"}`},
		{"remind me to back up every month on the 1st at noon", task, `{"action":"add","at":"12:00","content":"Back up","day_of_month":1,"priority":5,"schedule_type":"monthly"}`},
		{"remind me to fly on 2026-12-24 at 6:05 am", task, `{"action":"add","at":"2026-12-24 06:05","content":"Fly","priority":5,"schedule_type":"once"}`},
		{"remind me to meet at 99", task, `{"action":"add","content":"Meet at 99","priority":5}`},
		{"remind me to look at 3 pictures", task, `{"action":"add","content":"Look at 3 pictures","priority":5}`},
		{"add a task: fix the auth bug", task, `{"action":"add","content":"Fix the auth bug","priority":5}`},
		{"what are my tasks?", task, `{"action":"list"}`},
		{"List tasks", task, `{"action":"list"}`},
		{"complete task #task_abc23xyz", task, `{"action":"complete","reason":"The person says that it is done.","task_id":"task_abc23xyz"}`},

		{"read MEMORIES.txt", read, `{"path":"MEMORIES.txt"}`},
		{"Please read the file `skills/tea.md`.", read, `{"path":"skills/tea.md"}`},
		{"add skill tea: How to make tea", skill, `{"documentation":"How to make tea","skill_name":"tea","summary":"How to make tea"}`},
		{"add skill tea: How to make tea\n1. Boil water.\n2. Wait.", skill, `{"documentation":"1. Boil water.\n2. Wait.","skill_name":"tea","summary":"How to make tea"}`},
	}
	m, _ := start(t, 0)
	for _, tt := range tests {
		t.Run(tt.said, func(t *testing.T) {
			calls := ask(t, m, past(user(tt.said))...).ToolCalls
			if len(calls) != 1 || calls[0].Name != tt.tool || calls[0].ID == "" {
				t.Fatalf("calls: %+v", calls)
			}
			if d := cmp.Diff(tt.args, calls[0].Arguments); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAfterTheTool(t *testing.T) {
	m, _ := start(t, 0)
	tests := []struct{ said, result, want string }{
		{"remember that I like tea", "stored: I like tea\n\n[note k3f9]\nnew: x\n[/note k3f9]", "I will remember: I like tea."},
		{"remember that I like tea", "error: the disk is full", "That did not work. The tool `append_memory` says: error: the disk is full"},
		{"remember that I like tea", `{"error": "no"}`, "That did not work. The tool `append_memory` says: {\"error\": \"no\"}"},
		{"remind me to call Jana at 18:00", "Added: [P5] #task_abc: Call Jana [once on 2026-11-20 at 18:00]",
			"I will remind you on 2026-11-20 at 18:00: Call Jana."},
		{"remind me to call Jana", "content: is too long", "That did not work. The tool `task` says: content: is too long"},
		{"complete task_abc", "Completed: [P5] #task_abc: Call Jana", "Completed: [P5] #task_abc: Call Jana"},
		{"complete task_abc", "task failed: no task #task_abc in this room", "That did not work. The tool `task` says: task failed: no task #task_abc in this room"},
		{"remember that I like tea", "append_memory failed: the disk is full", "That did not work. The tool `append_memory` says: append_memory failed: the disk is full"},
		{"remember that I like tea", "Nothing can be remembered in this conversation.", "That did not work. The tool `append_memory` says: Nothing can be remembered in this conversation."},
		{"read a.txt", "There is no file a.txt.", "That did not work. The tool `read_file` says: There is no file a.txt."},
		{"list my tasks", "[P5] #task_abc: Call Jana\n[P5] #task_abd: x", "Your tasks:\n\n```\n[P5] #task_abc: Call Jana\n[P5] #task_abd: x\n```"},
		{"read a.txt", "one\n```\ntwo", "`a.txt` begins:\n\n```\none\n'''\ntwo\n```"},
		{"read a.txt", strings.Repeat("x\n", 50), "`a.txt` begins:\n\n```\n" + strings.Repeat("x\n", 12) + "…\n```"},
		{"add skill tea: How", "Skill tea is stored in data/skills/tea.md: How", "The skill `tea` is kept: How"},
	}
	for _, tt := range tests {
		calls, text := act(t, m, tt.result, past(user(tt.said))...)
		if len(calls) != 1 || text != tt.want {
			t.Errorf("%s: %d calls, then %q, want %q", tt.said, len(calls), text, tt.want)
		}
	}
}

func TestRecall(t *testing.T) {
	system := llm.Message{Role: llm.System, Content: "You keep what a sister says.\n# Memories\n" +
		"<data id=\"k3f9\" source=\"memories\">\n# heading about a sister\n- My sister's name is Jana\n- My brother's name is Tom\n- The WiFi password is on the fridge\n" +
		"- My favourite colours are blue and green\n</data k3f9>\nAfter it: a sister, too.\n" +
		"<data id=\"k3f9\" source=\"skills\">\n- data/skills/flute.md — How to play the flute\n</data k3f9>"}
	said := []llm.Message{
		user("[Fri 2026-11-20 10:00 CET]\nmy dog is called Rex"), {Role: llm.Assistant, Content: "A dog! Is the unicorn yours too?"},
		user("what do you know about the zebra?"), {Role: llm.Assistant, Content: "Nothing."},
		user("remember that my neighbour is Olga"), {Role: llm.Assistant, Content: "ok"},
	}
	tests := []struct{ ask, want string }{ // want "" = nothing found
		{"what do you know about my sister?", "> My sister's name is Jana"},
		{"What's my sister's name?", "> My sister's name is Jana"},
		{"who is Jana", "> My sister's name is Jana"},
		{"do you remember my sister?", "> My sister's name is Jana"},
		{"[Sat 2026-11-21 09:14 CET]\nwhat is my favourite colour?", "> My favourite colours are blue and green"},
		{"where is the wifi password?", "> The WiFi password is on the fridge"},
		{"what do you know about my dog?", "> my dog is called Rex"},
		{"who is my neighbour?", "> My neighbour is Olga"},
		{"what do you know about names?", "> - My sister's name is Jana\n> - My brother's name is Tom"},
		{"what do you know about the moon?\n\n[note k3f9]\nnew:\n<data id=\"k3f9\">\n- The moon is far\n</data k3f9>\n[/note k3f9]", "> The moon is far"},
		{"what do you know about me?", "> - My favourite colours are blue and green"},
		{"what do you know about flutes?", "> data/skills/flute.md — How to play the flute"},
		{"what is my cousin's name?", ""},
		{"what do you know about the unicorn?", ""}, // only the model spoke of it
		{"what do you know about zebras?", ""},      // only a question spoke of it
		{"what do you know about the moon?\n\n[note k3f9]\nthe moon is for the program\n[/note k3f9]", ""},
	}
	m, _ := start(t, 0)
	for _, tt := range tests {
		t.Run(tt.ask, func(t *testing.T) {
			got := ask(t, m, append(append([]llm.Message{system}, said...), user(tt.ask))...).Text
			switch {
			case strings.HasSuffix(tt.ask, "about me?") && strings.Contains(got, "flute"):
				t.Errorf("a skill is not about people: %s", got)
			case tt.want == "" && (!strings.HasPrefix(got, "Nothing about ") || strings.Contains(got, "\n")):
				t.Errorf("found something: %s", got)
			case !strings.Contains(got, tt.want):
				t.Errorf("got %s\nwant %s", got, tt.want)
			case tt.want != "" && !strings.HasPrefix(tt.want, "> -") && strings.Count(got, "\n") != 2:
				t.Errorf("more than the one line: %s", got)
			}
		})
	}
}

func TestNoticeComesFirstAndOnce(t *testing.T) {
	m, _ := start(t, 0)
	if got := ask(t, m, user("hello")).Text; !strings.HasPrefix(got, notice+"\n\n") || !strings.HasSuffix(got, "Hello! I heard “hello”, but I only rehearse: without a language model I can say no more about it.") {
		t.Errorf("first: %s", got)
	}
	if got := ask(t, m, past(user("hello again"))...).Text; strings.Contains(got, notice) {
		t.Errorf("later: %s", got)
	}
	calls, text := act(t, m, "stored: I like tea", user("remember that I like tea"))
	if len(calls) != 1 || text != notice+"\n\nI will remember: I like tea." {
		t.Errorf("after a tool: %s", text)
	}
	for _, want := range []string{"no language model is connected", "ollama", "llama.cpp", "lm studio", "reverie_llm_url", "reverie_llm_key", "reverie_llm_model", "llm.models"} {
		if !strings.Contains(strings.ToLower(notice), want) {
			t.Errorf("the notice lacks %q", want)
		}
	}
	if n := strings.Count(notice, "\n") + 1; n < 2 || n > 4 {
		t.Errorf("the notice has %d lines", n)
	}
}

// Every message gets an answer, and its header and notes never count as the person's words.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"hello", "remember that x", "what do you know about x?", "remind me to x every day at 25", "read a.b", "add skill x: y", "[x", "<x", "remind me in 5 minutes", "ſ remember", "tomorrow", "remind me \xff", "remember ÿ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, words string) {
		text := "[Sat 2026-11-21 09:14 CET]\n" + words + "\n\n[note k3f9]\nxylophone\n[/note k3f9]"
		req := request{Model: ModelName, Messages: []message{{Role: "user", text: text}}}
		if hookRE().MatchString(words) {
			return
		}
		a := req.truncate(answer(req))
		if a.text == "" && len(a.calls) == 0 {
			t.Fatal("no answer")
		}
		if !strings.Contains(words, "xylophone") && strings.TrimSpace(beforeNotes(words)) != "" && strings.Contains(a.text, "xylophone") {
			t.Fatalf("the note was taken for their words: %s", a.text)
		}
		for _, n := range []string{"append_memory", "task", "add_skill", "read_file"} {
			req.Tools = append(req.Tools, tool{name: n})
		}
		for _, c := range answer(req).calls {
			if !json.Valid([]byte(c.Function.Arguments)) {
				t.Fatalf("arguments: %s", c.Function.Arguments)
			}
		}
		if got := strings.Join(splitWords(a.text), ""); got != a.text {
			t.Fatalf("%q in words is %q", a.text, got)
		}
	})
}

func TestSummarise(t *testing.T) {
	m, _ := start(t, 0)
	got := ask(t, m, llm.Message{Role: llm.System, Content: "Write a summary, at most 20 words."}, user(
		"Previous:\n<data id=\"k\" source=\"summary\">\nada said: I am Ada\n\nWord for word:\n- ada: code 4711\n</data k>\n\n"+
			"Now:\n<data id=\"k\" source=\"conversation\">\nada [Sat 09:14]: rehearse: error 500\nassistant: no\nada [Sat 09:15]: "+
			"this line has more words than there is room for here\nada [Sat 09:16]: I like tea\n</data k>"))
	if want := "ada said: I am Ada\nada said: rehearse: error 500\nada said: I like tea"; got.Text != want {
		t.Errorf("got %q", got.Text)
	}
}
