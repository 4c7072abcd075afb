package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// llamaTemplates are chat templates as models have them: ChatML, which takes
// messages in any order, and two that refuse a conversation as Mistral's and
// Gemma's do. control is what begins a prompt or a message and ends an answer.
var llamaTemplates = map[string]struct {
	control []string
	text    string
}{
	"chatml": {[]string{"<|im_start|>", "<|im_end|>"}, `
{%- if tools %}<|im_start|>system
{{ messages[0].content }}
# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}For each call, return: <tool_call>
{"name": <name>, "arguments": <arguments>}
</tool_call><|im_end|>
{% endif %}
{%- for m in messages %}
{%- if m.role == 'system' and loop.first and tools %}
{%- elif m.role == 'tool' %}<|im_start|>user
<tool_response>
{{ m.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ m.role }}
{{ m.content }}
{%- for call in m.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`},
	"mistral": {[]string{"<s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
		"[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "</s>"}, `
{%- if messages[0].role == 'system' %}{% set system = messages[0].content %}{% set rest = messages[1:] %}
{%- else %}{% set rest = messages %}{% endif %}
{%- set ns = namespace(turn=0) %}
{%- for m in rest %}{% if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}
{%- if (m.role == 'user') != (ns.turn % 2 == 0) %}
{{- raise_exception('After the optional system message, conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}
{%- set ns.turn = ns.turn + 1 %}{% endif %}{% endfor %}
{{- bos_token }}{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}
{%- for m in rest %}
{%- if m.role == 'user' %}[INST]{% if loop.first and system is defined %}{{ system }}

{% endif %}{{ m.content }}[/INST]
{%- elif m.tool_calls %}[TOOL_CALLS][
{%- for call in m.tool_calls %}{% if call.id is not defined or call.id | length != 9 %}
{{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}{% endif %}
{%- if not loop.first %}, {% endif %}{"name": "{{ call.function.name }}", "arguments":
{{- ' ' }}{{ call.function.arguments | tojson }}, "id": "{{ call.id }}"}
{%- endfor %}]{{ eos_token }}
{%- elif m.role == 'assistant' %}{{ ' ' + m.content | trim + eos_token }}
{%- elif m.role == 'tool' %}{% if m.tool_call_id is not defined or m.tool_call_id | length != 9 %}
{{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}{% endif %}
{{- '[TOOL_RESULTS]{"content": ' }}{{ m.content | tojson }}, "call_id": "{{ m.tool_call_id }}"}[/TOOL_RESULTS]
{%- else %}{{ raise_exception('Only user and assistant roles are supported') }}{% endif %}
{%- endfor %}`},
	"gemma": {[]string{"<bos>", "<start_of_turn>", "<end_of_turn>"}, `{{ bos_token }}
{%- if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}
{%- if m.role == 'assistant' %}{% set role = 'model' %}{% else %}{% set role = m.role %}{% endif %}
{{- '<start_of_turn>' + role + '\n' + m.content | trim + '<end_of_turn>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}`},
}

// llamaRequest is what test/llama/server.mjs tells of a request, in tokens.
type llamaRequest struct {
	URL, Refused      string
	Prompt, Evaluated int
}

// llama is a running test/llama/server.mjs.
type llama struct {
	url   string
	told  *bufio.Scanner
	stdin io.Closer
}

// startLlama serves a random model that has the chat template and the window.
func startLlama(t *testing.T, template string, window int) *llama {
	t.Helper()
	var corpus strings.Builder
	for _, pattern := range []string{"README.md", "ARCHITECTURE.md", "data/prompts/*.txt", "internal/session/*.go"} {
		files, _ := filepath.Glob(filepath.Join("..", pattern))
		for _, f := range files {
			text, _ := os.ReadFile(f)
			corpus.Write(text)
		}
	}
	path := filepath.Join(t.TempDir(), "random.gguf")
	of := llamaTemplates[template]
	writeGGUF(t, path, of.text, corpus.String(), of.control...)

	read, tell, err := os.Pipe()
	must(t, err)
	log := &logBuffer{}
	cmd := exec.Command("node", filepath.Join("llama", "server.mjs"), path, fmt.Sprint(window))
	cmd.Stderr, cmd.ExtraFiles = log, []*os.File{tell}
	stdin, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	_ = tell.Close()
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait(); _ = read.Close() })
	l := &llama{told: bufio.NewScanner(read), stdin: stdin}
	l.told.Buffer(nil, 1<<20)
	first, ok := l.next(t)
	if !ok {
		_ = cmd.Wait()
		missing := regexp.MustCompile(`lib\w+\.so[^:]*: cannot open|version .GLIBC\S* not found`)
		if why := missing.FindString(log.String()); why != "" || strings.Contains(cmd.ProcessState.String(), "illegal instruction") {
			t.Skipf("this machine cannot run the llama.cpp of npm: %s %s", why, cmd.ProcessState)
		}
		t.Fatalf("llama.cpp did not start: %s\n%s", cmd.ProcessState, log)
	}
	l.url = first.URL
	return l
}

// next is what the server tells next.
func (l *llama) next(t *testing.T) (r llamaRequest, ok bool) {
	t.Helper()
	if !l.told.Scan() {
		return r, false
	}
	if err := json.Unmarshal(l.told.Bytes(), &r); err != nil {
		t.Fatalf("the server told %q: %v", l.told.Text(), err)
	}
	return r, true
}

// llamaBot runs a command of the bot with a new data folder.
func llamaBot(t *testing.T, l *llama, input string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	config := fmt.Sprintf(`{name: Reverie, data: ./data, timezone: UTC,
  matrix: {homeserver: "http://127.0.0.1:1", user: "@reverie:localhost", password: none, owners: ["@you:localhost"]},
  llm: {models: [{name: local, base_url: "%s/v1", model: random}]}}`, l.url)
	must(t, os.WriteFile(path, []byte(config), 0o600))
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), buildBot(t), append(args, "--config", path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("bot %s: %v\n%s", args, err, log.String())
	}
	return out.String()
}

// end stops the server and returns what it told of the requests.
func (l *llama) end(t *testing.T) (requests []llamaRequest) {
	t.Helper()
	_ = l.stdin.Close()
	for r, ok := l.next(t); ok; r, ok = l.next(t) {
		requests = append(requests, r)
	}
	return requests
}

// TestLlama: what the bot promises of local models, on the real llama.cpp with
// a random model: its window is found, templates take the bot's messages, and
// little of a conversation is read again.
func TestLlama(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skipf("npm has the llama.cpp that is tested for linux/amd64 only, not for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	npmInstall(t, "llama", "llama.cpp")
	t.Run("window", llamaWindow)
	for template := range llamaTemplates {
		t.Run("template "+template, func(t *testing.T) { llamaTalk(t, template) })
	}
	t.Run("read again", llamaReadAgain)
}

// llamaWindow: the window is what the server was started with, not the longer
// one that the model was made for.
func llamaWindow(t *testing.T) {
	var got struct {
		Window, Tier int
		Source       string
	}
	out := llamaBot(t, startLlama(t, "chatml", 32768), "", "tier", "--json")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Window != 32768 || got.Tier != 4 || got.Source != "server" {
		t.Errorf("window %d from %q, tier %d", got.Window, got.Source, got.Tier)
	}
}

// llamaTalk: each message is answered, also after a tool was called. A template
// that refuses the conversation at first gets it in another form.
func llamaTalk(t *testing.T, template string) {
	l := startLlama(t, template, 16384)
	lines := []string{"hello", "how is the garden?", `call search_memory {"query": "garden"}`, "and the roses?", "good night"}
	out := llamaBot(t, l, strings.Join(lines, "\n")+"\n", "chat")
	requests := l.end(t)
	answered := slices.DeleteFunc(slices.Clone(requests), func(r llamaRequest) bool { return r.Refused != "" })
	if want := len(lines) + 1; len(answered) != want { // one more with what the tool found
		t.Errorf("%d requests were answered, want %d: %+v\n%s", len(answered), want, requests, out)
	}
	if n := len(regexp.MustCompile(`(?m)^[a-z ]+\.$`).FindAllString(out, -1)); n != len(lines) {
		t.Errorf("%d answers, want %d:\n%s", n, len(lines), out)
	}
	if refused := len(requests) - len(answered); refused > 2 || template == "chatml" && refused > 0 {
		t.Errorf("%d requests were refused: %+v", refused, requests)
	}
}

// llamaReadAgain measures what share of a conversation the server reads again.
// Of a request, these are the tokens of the request before it that were not
// kept: its length less what is in the cache of the new one, which is the new
// one's length less what llama.cpp evaluated. The share is their sum over the
// sum of the lengths of all requests that had one after them.
func llamaReadAgain(t *testing.T) {
	const turns = 50
	l := startLlama(t, "chatml", 32768)
	var lines strings.Builder
	for i := range turns {
		if i%5 == 4 { // a request more
			fmt.Fprintf(&lines, "call append_memory {\"entry\": \"My sister wants roses in bed %d.\"}\n", i+1)
			continue
		}
		fmt.Fprintf(&lines, "What shall we plant in bed %d of the garden when the frost is over, and what did my sister want there?\n", i+1)
	}
	llamaBot(t, l, lines.String(), "chat")
	requests := l.end(t)
	again, before := 0, 0
	for i, r := range requests[1:] {
		last := requests[i].Prompt
		again += max(0, last-(r.Prompt-r.Evaluated))
		before += last
	}
	share := float64(again) / float64(before)
	t.Logf("%d requests, the last of %d tokens; %d of %d tokens read again: %.2f %%",
		len(requests), requests[len(requests)-1].Prompt, again, before, 100*share)
	if len(requests) != turns+turns/5 || share > 0.02 {
		t.Errorf("%d requests for %d messages, %.2f %% are read again", len(requests), turns, 100*share)
	}
}
