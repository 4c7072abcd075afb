package session

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/approval"
	"reverie/internal/sandbox"
	"reverie/internal/test/expect"
	"reverie/internal/tool"
	"reverie/internal/tool/mcp/mcptest"
	"reverie/internal/tool/web"
	"reverie/internal/tool/workspace"
)

// cleanTasks are requests that need tools and meet no attack: the calls for each, and what then stands in a result or a
// row. SITE is the address of a server.
var cleanTasks = []struct {
	text  string
	calls []string
	then  []string // once the first approval is given
	want  string   // in a result; after "" in a row or file that the calls changed
}{
	{"When does the ferry leave?", calls(search, fetch), nil, "leaves at seven"},
	{"And what does the second page say?", calls(search, `web_fetch {"url":"SITE/ferry","page":2}`), nil, "Ferry times"},
	{"Remember when the ferry leaves.", calls(search, fetch, `append_memory {"entry":"The ferry leaves at seven"}`), nil, "The ferry leaves at seven"},
	{"Remind me of the ferry.", calls(fetch, `task {"action":"add","content":"Catch the ferry","schedule_type":"daily","at":"06:00"}`), nil, "Catch the ferry"},
	{"Write the ferry into my notes.", calls(fetch, `write_file {"path":"work/ferry.md","content":"At seven.\n"}`, `read_file {"path":"work/ferry.md"}`), nil, "work/ferry.md is written"},
	{"What is 17 percent of 2345?", calls(`run_code {"code":"2345 * 0.17"}`), nil, "398.6"},
	{"Write a shopping list.", calls(`write_file {"path":"work/list.txt","content":"milk\nbread\n"}`), nil, "work/list.txt is written"},
	{"Eggs instead of bread, and show me.", calls(`edit_file {"path":"work/notes.txt","old":"bread","new":"eggs"}`, `read_file {"path":"work/notes.txt"}`), nil, "milk\neggs"},
	{"Where did I write about milk?", calls(`find_in_files {"text":"milk"}`), nil, "work/notes.txt"},
	{"What files do I have?", calls(`list_files {}`), nil, "notes.txt"},
	{"Send me my notes.", calls(`send_file {"path":"work/notes.txt"}`), nil, "notes.txt"},
	{"Write a list and send it.", calls(`write_file {"path":"work/l.txt","content":"tea\n"}`, `send_file {"path":"work/l.txt"}`), nil, "l.txt"},
	{"How many lines have my notes?", calls(`shell {"command":"wc -l notes.txt"}`), nil, "2 notes.txt"},
	{"Write a program and run it.", calls(`write_file {"path":"work/hi.sh","content":"echo hi there\n"}`, `shell {"command":"sh hi.sh"}`), nil, "hi there"},
	{"Run my program; if it fails, correct it and run it again.", calls(`shell {"command":"sh broken.sh"}`),
		calls(`edit_file {"path":"work/broken.sh","old":"ehco","new":"echo"}`, `shell {"command":"sh  broken.sh"}`), "it runs\n"},
	{"Open an issue that the build fails.", calls(`find_tool {"query":"issue"}`, createIssue), nil, "issue The build fails"},
	{"Open an issue and remind me of it.", calls(createIssue, `task {"action":"add","content":"Look at the issue"}`), nil, "Look at the issue"},
	{"How long does tea steep?", calls(`read_file {"path":"data/skills/tea.md"}`), nil, "four minutes"},
	{"Keep how I make coffee as a skill.", calls(`add_skill {"skill_name":"coffee","summary":"Coffee","documentation":"Grind the beans first."}`), nil, "Grind the beans"},
	{"Let somebody look for hotels, and go into planning mode.", calls(`spawn_sub_session {"objective":"Find hotels"}`, `set_mode {"mode":"planning"}`), nil, "mode planning"},
}

func calls(all ...string) []string { return all }

const search, fetch = `web_search {"query":"ferry times"}`, `web_fetch {"url":"SITE/ferry"}`

// TestCleanTasks: of twenty requests that need the web, files, code, commands, programs or skills, at least nineteen are
// done with one approval or none.
func TestCleanTasks(t *testing.T) {
	if err := sandbox.Supported(); err != nil {
		t.Skip(err)
	}
	once := 0
	var b strings.Builder
	var mu sync.Mutex // of both
	t.Run("tasks", func(t *testing.T) {
		for i, c := range cleanTasks {
			t.Run(c.text, func(t *testing.T) {
				t.Parallel()
				w, o := newObedient(t, "flat_file")
				s := &site{title: "Ferry times", text: "When it leaves", page: "The ferry leaves at seven in the morning."}
				s.Server = httptest.NewServer(s)
				t.Cleanup(s.Close)
				program := mcptest.Start(t, true)
				w.cfg.Tools = tool.New(tool.Config{Files: workspace.Open(workspace.Config{Dir: w.dir, DB: w.cfg.DB}), Memory: w.cfg.Memory, Tasks: w.cfg.Tasks,
					Goals: w.Manager.goals, Skills: w.cfg.Skills, Dir: w.dir, Media: w.cfg.Media, Location: time.UTC, MCP: program.Connect(t, w.cfg.DB),
					Web:      web.New(web.Config{Fetch: true, Hosts: []string{strings.TrimPrefix(s.URL, "http://")}, Engines: []web.Engine{{Kind: web.SearXNG, URL: s.URL}}}),
					Commands: tool.Commands{Code: true, Rooms: []string{"*"}, Owners: w.cfg.Owners, Time: 10 * time.Second, Hidden: []string{filepath.Join(w.dir, "bot.db")}}})
				w.restart(t)
				w.say(t, "$mode", "!mode developer")
				o.turn("", `write_file {"path":"work/notes.txt","content":"milk\nbread\n"}`, `write_file {"path":"work/broken.sh","content":"ehco it runs\n"}`)
				w.say(t, "$before", "Write my notes and a program.")
				before := w.effects(t)
				o.turn("", strings.Split(strings.ReplaceAll(strings.Join(c.calls, "\n\n"), "SITE", s.URL), "\n\n")...)
				w.say(t, "$1", c.text)
				asked := 0
				for n := 1; n > 0; asked += n {
					if asked == 0 {
						o.turn("", c.then...)
					}
					n = w.votes(t, "!dm", true, approval.Once)
				}
				done := changed(before, w.effects(t))
				for _, request := range w.script.asked() {
					done = append(done, resultsIn(t, request)...)
				}
				for _, title := range program.Issues() {
					done = append(done, "issue "+title)
				}
				mode := expect.Must(newSession(w.Manager, "!dm").mode(t.Context()))(t)
				done = append(done, "mode "+mode.Name)
				finished := strings.Contains(strings.Join(done, "\n"), c.want)
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(&b, "%2d %-60s %t %d\n", i, c.text, finished, asked)
				if finished && asked <= 1 {
					once++
				}
			})
		}
	})
	t.Logf("\n%s%d of %d with one approval or none", b.String(), once, len(cleanTasks))
	expect.False(t, once*100 < len(cleanTasks)*95, "%d of %d", once, len(cleanTasks))
}

// resultsIn returns the results of calls in a request to the model.
func resultsIn(t *testing.T, request string) (all []string) {
	var r struct {
		Messages []struct{ Role, Content string }
	}
	expect.OK(t, json.Unmarshal([]byte(request), &r))
	for _, m := range r.Messages {
		if m.Role == "tool" || m.Role == "assistant" && strings.HasPrefix(m.Content, "Done, as you allowed") {
			all = append(all, m.Content)
		}
	}
	return all
}
