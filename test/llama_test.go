package test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"reverie/internal/test/expect"
)

// llamaTemplates are chat templates of models: ChatML, which accepts messages in any order, and two that
// reject conversations as Mistral's and Gemma's do. control are the tokens that begin a prompt or a
// message and end an answer.
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

// llamaRequest is the report of test/llama/server.mjs about a request, in tokens.
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

// startLlama serves a random model with the chat template and the context window.
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
	expect.OK(t, err)
	log := &logBuffer{}
	cmd := exec.Command("node", filepath.Join("llama", "server.mjs"), path, fmt.Sprint(window))
	cmd.Stderr, cmd.ExtraFiles = log, []*os.File{tell}
	stdin := expect.Must(cmd.StdinPipe())(t)
	expect.OK(t, cmd.Start())
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

// next returns the server's next report.
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
	expect.OK(t, os.WriteFile(path, []byte(config), 0o600))
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), buildBot(t), append(args, "--config", path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("bot %s: %v\n%s", args, err, log.String())
	}
	return out.String()
}

// end stops the server and returns its reports.
func (l *llama) end(t *testing.T) (requests []llamaRequest) {
	t.Helper()
	_ = l.stdin.Close()
	for r, ok := l.next(t); ok; r, ok = l.next(t) {
		requests = append(requests, r)
	}
	return requests
}

// TestLlama tests the bot's promises about local models on the real llama.cpp with a random model: it
// finds the context window, templates accept its messages, and prompts are mostly cached.
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

// llamaWindow: the window is that of the running server, not the longer one of the model.
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

// llamaTalk: each message is answered, also after a tool call. If a template rejects the conversation,
// the bot sends it in another form.
func llamaTalk(t *testing.T, template string) {
	l := startLlama(t, template, 16384)
	lines := []string{"hello", "how is the garden?", `call search_memory {"query": "garden"}`, "and the roses?", "good night"}
	out := llamaBot(t, l, strings.Join(lines, "\n")+"\n", "chat")
	requests := l.end(t)
	answered := slices.DeleteFunc(slices.Clone(requests), func(r llamaRequest) bool { return r.Refused != "" })
	if want := len(lines) + 1; len(answered) != want { // one more with the tool's result
		t.Errorf("%d requests were answered, want %d: %+v\n%s", len(answered), want, requests, out)
	}
	expect.Equal(t, len(regexp.MustCompile(`(?m)^[a-z ]+\.$`).FindAllString(out, -1)), len(lines), "answers:\n%s", out)
	if refused := len(requests) - len(answered); refused > 2 || template == "chatml" && refused > 0 {
		t.Errorf("%d requests were refused: %+v", refused, requests)
	}
}

// llamaReadAgain measures what share of a conversation the server evaluates again. For a request, these
// are the tokens of the one before that were not cached: its length minus the cached tokens of the new
// one, which are the new length minus what llama.cpp evaluated. The share is their sum over the sum of
// the lengths of all requests that had a successor.
func llamaReadAgain(t *testing.T) {
	const turns = 50
	l := startLlama(t, "chatml", 32768)
	var lines strings.Builder
	for i := range turns {
		if i%5 == 4 { // an additional request
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

// Sizes of the random model: large enough for llama.cpp, small enough to evaluate a long prompt on one
// core.
const (
	ggufWidth   = 16 // of the embedding and of its one head
	ggufLayers  = 2
	ggufContext = 131072
)

// Value types of a GGUF file's metadata.
const (
	ggufUint32  uint32 = 4
	ggufInt32   uint32 = 5
	ggufFloat32 uint32 = 6
	ggufString  uint32 = 8
	ggufArray   uint32 = 9
)

// Kinds of tokens in a GGUF file.
const (
	ggufNormal  int32 = 1
	ggufControl int32 = 3
)

// gguf builds a file in the format of llama.cpp's models.
type gguf struct {
	meta, info, data bytes.Buffer
	keys, tensors    uint64
	random           *rand.Rand
}

// writeGGUF writes a random model of the llama architecture. Its tokens are the 256 bytes, the words of
// corpus, and the control tokens. The first of these begins a prompt if the template says so, the last
// ends an answer.
func writeGGUF(t *testing.T, path, template, corpus string, control ...string) {
	t.Helper()
	tokens, kinds := vocabulary(corpus, control)
	g := &gguf{random: rand.New(rand.NewPCG(1, 2))}
	g.str("general.architecture", "llama")
	g.str("general.name", "random")
	g.number("llama.context_length", ggufContext)
	g.number("llama.embedding_length", ggufWidth)
	g.number("llama.block_count", ggufLayers)
	g.number("llama.feed_forward_length", ggufWidth)
	g.number("llama.attention.head_count", 1)
	g.key("llama.attention.layer_norm_rms_epsilon", ggufFloat32)
	write(&g.meta, math.Float32bits(1e-5))
	g.str("tokenizer.ggml.model", "rwkv") // greedy longest match: it needs no merges
	g.key("tokenizer.ggml.tokens", ggufArray)
	write(&g.meta, ggufString, uint64(len(tokens)))
	for _, token := range tokens {
		write(&g.meta, uint64(len(token)), []byte(token))
	}
	g.key("tokenizer.ggml.token_type", ggufArray)
	write(&g.meta, ggufInt32, uint64(len(kinds)), kinds)
	g.number("tokenizer.ggml.bos_token_id", uint32(slices.Index(tokens, control[0])))
	g.number("tokenizer.ggml.eos_token_id", uint32(len(tokens)-1))
	g.str("tokenizer.chat_template", template)

	g.tensor("token_embd.weight", ggufWidth, len(tokens))
	g.tensor("output_norm.weight", ggufWidth)
	for i := range ggufLayers {
		for _, name := range []string{"attn_norm", "ffn_norm"} {
			g.tensor(fmt.Sprintf("blk.%d.%s.weight", i, name), ggufWidth)
		}
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"} {
			g.tensor(fmt.Sprintf("blk.%d.%s.weight", i, name), ggufWidth, ggufWidth)
		}
	}

	var file bytes.Buffer
	write(&file, []byte("GGUF"), uint32(3), g.tensors, g.keys, g.meta.Bytes(), g.info.Bytes())
	write(&file, make([]byte, (32-file.Len()%32)%32), g.data.Bytes())
	expect.OK(t, os.WriteFile(path, file.Bytes(), 0o600))
}

// vocabulary returns the bytes, the words of corpus with the space before them, its runs of punctuation,
// and the control tokens, in the notation of llama.cpp's rwkv tokenizer: \x20 is a byte, so that no
// token contains a backslash.
func vocabulary(corpus string, control []string) (tokens []string, kinds []int32) {
	for b := range 256 {
		tokens = append(tokens, fmt.Sprintf(`\x%02x`, b))
	}
	words := regexp.MustCompile(` ?[A-Za-z]{2,}|[!-/:-@_{-~]{2,4}`).FindAllString(corpus, -1)
	slices.Sort(words)
	tokens = append(append(tokens, slices.Compact(words)...), control...)
	kinds = slices.Repeat([]int32{ggufNormal}, len(tokens))
	for i := range control {
		kinds[len(kinds)-1-i] = ggufControl
	}
	return tokens, kinds
}

func write(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.LittleEndian, v) // a buffer does not fail
	}
}

func (g *gguf) key(name string, kind uint32) {
	g.keys++
	write(&g.meta, uint64(len(name)), []byte(name), kind)
}

func (g *gguf) str(name, value string) {
	g.key(name, ggufString)
	write(&g.meta, uint64(len(value)), []byte(value))
}

func (g *gguf) number(name string, value uint32) {
	g.key(name, ggufUint32)
	write(&g.meta, value)
}

// tensor adds 32-bit floats: ones for a norm, else random ones.
func (g *gguf) tensor(name string, dims ...int) {
	g.tensors++
	write(&g.info, uint64(len(name)), []byte(name), uint32(len(dims)))
	size := 1
	for _, d := range dims {
		size *= d
		write(&g.info, uint64(d))
	}
	write(&g.info, uint32(0), uint64(g.data.Len())) // 0 = 32-bit floats; the offset must be a multiple of 32 bytes
	values := make([]float32, size)
	for i := range values {
		if values[i] = 1; !strings.Contains(name, "norm") {
			values[i] = float32(g.random.NormFloat64()) / 4
		}
	}
	write(&g.data, values)
}
