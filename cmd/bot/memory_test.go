package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/doctor"
	"reverie/internal/dream"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/llm/encoder"
	"reverie/internal/media"
	"reverie/internal/memory"
	"reverie/internal/search"
	"reverie/internal/search/qdrant/standin"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
	"reverie/internal/vram"
	"reverie/internal/window"
)

// TestRedactedNotRecalled: a redacted message is neither found nor quoted again.
// Holds M7.
func TestRedactedNotRecalled(t *testing.T) {
	b := openTest(t, small+"memory: {backend: fts5}\n")
	const secret = "The vault opens with HERON-99."
	me := memory.Private(b.cfg.Owner())
	turn := memory.Turn{Scope: me, Event: "$1", Sender: b.cfg.Owner(), At: time.Now(), Conversation: "!dm", Seq: 1, Text: secret}
	expect.OK(t, b.memory.IndexTurns(t.Context(), turn))
	line := search.Hit{Turn: &turn}.Line(time.UTC, nil)
	for _, m := range []history.Message{
		{Role: llm.User, EventID: "$1", Text: secret}, {Role: llm.Assistant, EventID: "re:$1", Text: "Good."},
		{Role: llm.User, EventID: "$2", Text: "And now?", Tail: "Recalled: " + line}, {Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "c", Name: "search_memory", Arguments: `{"query":"vault"}`}}},
		{Role: llm.Tool, CallID: "c", Text: "The best first:\n" + line},
	} {
		m.Room, m.At = "!dm", time.Now()
		tail := m.Tail
		expect.OK(t, b.history.Append(t.Context(), &m))
		expect.Must(b.db.Exec(`UPDATE message SET tail = ? WHERE id = ?`, tail, m.ID))(t)
	}
	expect.OK(t, b.Redacted(t.Context(), "$1"))
	hits, err := b.memory.Search(t.Context(), memory.Query{Text: "vault HERON-99", Scopes: []memory.Scope{me}, Turns: true})
	if err != nil || len(hits) != 0 {
		t.Errorf("found %+v, %v", hits, err)
	}
	past, err := b.history.Load(t.Context(), "!dm")
	if err != nil || len(past) != 5 {
		t.Fatalf("%d messages, %v", len(past), err)
	}
	for _, m := range past {
		if strings.Contains(m.Text+m.Tail, "HERON-99") {
			t.Errorf("%s %s still says it: %q %q", m.Role, m.EventID, m.Text, m.Tail)
		}
	}
	if !b.memory.UsesWorkingSet() {
		t.Error("fts5 is asked for, and every memory goes into the prompt")
	}
}

// TestFilesAreDeleted: a redacted message's files are deleted unless another message has them, and
// so are files that no conversation needs.
func TestFilesAreDeleted(t *testing.T) {
	b := openTest(t, small)
	kept := map[string]string{}
	for _, name := range []string{"one", "both", "old", "moving", "nobody's"} {
		k := expect.Must(b.media.Save(bytes.NewReader([]byte(name)), 1000))(t)
		kept[name] = k.Path
	}
	there := func(name string) bool { _, err := os.Stat(b.media.File(kept[name])); return err == nil }
	say := func(event string, names ...string) {
		m := history.Message{Room: "!dm", Role: llm.User, EventID: event, Text: "look", At: time.Now()}
		for _, n := range names {
			m.Files = append(m.Files, history.File{Name: n, Path: kept[n]})
		}
		expect.OK(t, b.history.Append(t.Context(), &m))
	}
	say("$0", "old")
	expect.Must(b.history.StartNew(t.Context(), "!dm"))(t)
	say("$1", "one", "both")
	say("$2", "both")
	expect.OK(t, b.Redacted(t.Context(), "$1"))
	if there("one") || !there("both") {
		t.Errorf("one is there: %v; both: %v", there("one"), there("both"))
	}
	moving := func(context.Context) ([]string, error) { return []string{kept["moving"]}, nil }
	for _, step := range []struct {
		after time.Duration
		left  map[string]bool
	}{
		{0, map[string]bool{"both": true, "old": true, "moving": true, "nobody's": true}},
		{2 * time.Hour, map[string]bool{"both": true, "old": true, "moving": true}},
		{8 * 24 * time.Hour, map[string]bool{"both": true, "moving": true}},
	} {
		expect.Must(b.media.SweepUnused(t.Context(), b.fileUses(moving), time.Now().Add(step.after)))(t)
		for name := range kept {
			expect.Equal(t, there(name), step.left[name], "after %v %s is there", step.after, name)
		}
	}
	if media.Stem(kept["old"]) == media.Stem(kept["both"]) {
		t.Error("two contents have one name")
	}
}

// TestHarvestOfTheWholeBot: facts from direct chats and rooms are learned in the right scope and
// written to their files, also at compaction and !new.
func TestHarvestOfTheWholeBot(t *testing.T) {
	b := openTest(t, rehearsing)
	say := func(room, text string, shared bool) {
		m := history.Message{Room: history.Timeline(room), Role: llm.User, EventID: fmt.Sprintf("$%s%d", room, time.Now().UnixNano()), Sender: b.cfg.Owner(), Text: text, At: time.Now(),
			Header: b.prompt.Header(time.Now(), b.cfg.Owner(), shared)}
		m.Label = trust.Label{Integrity: trust.Owner, Readers: trust.Place{Room: room, Person: b.cfg.Owner(), Private: !shared}.Readers()}
		expect.OK(t, b.history.Append(t.Context(), &m))
	}
	say("!dm", "By the way. My canary is called Tweety.", false)
	expect.Must(b.history.StartNew(t.Context(), "!dm"))(t)
	say("!dm", "I prefer green tea! The password is hunter2. My password is hunter3.", false)
	say("!dm", "rehearse: error 500. I live in Kiel.", false)
	say("!group", "Our meeting is on Monday. What do you think?", true)
	d := b.openDreamer()
	r, err := d.Dream(t.Context(), dream.Options{Phases: []dream.Phase{dream.Harvest}, Now: true})
	if err != nil || r.Harvested == nil || r.Harvested.Added != 4 || r.Harvested.Messages != 4 || r.Harvested.Requests != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	file, err := os.ReadFile(filepath.Join(b.cfg.Data, "MEMORIES.txt"))
	if err != nil || !strings.Contains(string(file), "My canary is called Tweety") || !strings.Contains(string(file), "I prefer green tea") || strings.Contains(string(file), "hunter") ||
		strings.Contains(string(file), "meeting") {
		t.Errorf("%s, %v", file, err)
	}
	room, err := b.memory.WorkingSet(t.Context(), memory.Room("!group"))
	if err != nil || len(room) != 1 || room[0].Text != "owner said: Our meeting is on Monday" {
		t.Errorf("%+v, %v", room, err)
	}
}

// TestOpenVectors: the source of vectors, and the log if there is no source.
func TestOpenVectors(t *testing.T) {
	const other = "  embedding: {base_url: \"http://127.0.0.1:1/v1\", model: other}\nmemory: {backend: "
	for more, want := range map[string]string{
		"memory: {backend: fts5}\n": "", "": encoder.Model, other + "local_vector}\n": "other", other + "flat_file}\n": "",
	} {
		var said strings.Builder
		v := openLogged(t, small+more, &said).vectors
		model := ""
		if v != nil {
			model = v.Status(t.Context()).Model
		}
		if want == encoder.Model && !encoder.BuiltIn() {
			if want = ""; !strings.Contains(said.String(), "found by their words only") {
				t.Errorf("without weights it says %q", said.String())
			}
		}
		expect.Equal(t, model, want, "%q: the maker of vectors", more)
	}
}

// TestQdrantAtWork: the bot embeds memories in the background, searches them on a server, reports
// its state, and deletes forgotten ones there.
func TestQdrantAtWork(t *testing.T) {
	if _, err := encoder.Embedded(); err != nil {
		t.Skip("no weights are built in: make weights")
	}
	s := &standin.Server{Key: "hunter9"}
	server := httptest.NewServer(s)
	defer server.Close()
	var log strings.Builder
	b := openLogged(t, small+`memory: {backend: qdrant, qdrant: {url: "`+server.URL+`", api_key: hunter9, collection: test}}`, &log)
	for _, text := range []string{"Rex is my puppy.", "The kitchen was painted green.", "The train leaves at seven."} {
		if _, _, err := b.memory.Add(t.Context(), memory.Entry{Scope: memory.Shared, Text: text, Source: memory.Assistant, Integrity: trust.User}, "assistant"); err != nil {
			t.Fatal(err)
		}
	}
	stop := background(t, b.runVectors)
	until(t, "not all vectors are stored", func() bool {
		n := 0
		for _, name := range s.Collections() {
			n += len(s.Points(name))
		}
		return n == 3
	})
	hits, err := b.memory.Search(t.Context(), memory.Query{Text: "Does anybody own a dog?", Scopes: []memory.Scope{memory.Shared}})
	if err != nil || len(hits) == 0 || hits[0].Entry.Text != "Rex is my puppy." {
		t.Errorf("found %+v, %v", hits, err)
	}
	if !slices.Contains(s.Calls(), "POST /collections/"+s.Collections()[0]+"/points/query") {
		t.Errorf("the server was asked %q", s.Calls())
	}
	stop()
	if lines := b.vectorLines(t.Context(), b.messages.For(t.Context(), "!r")); len(lines) != 1 || lines[0] != "qdrant: in use" {
		t.Errorf("status %q", lines)
	}
	examined := func() doctor.Findings {
		return slices.DeleteFunc(b.doctor().Examine(t.Context()), func(f doctor.Finding) bool { return f.Area != "qdrant" })
	}
	if f := examined(); len(f) != 1 || f[0].State != doctor.OK {
		t.Errorf("the doctor says %+v", f)
	}
	// At the command line, where no vectors are read.
	c := *b
	c.closers = nil
	c.server = c.openServer(nil, 0)
	if c.memory, err = memory.Open(t.Context(), memory.Config{DB: b.db, Dir: b.cfg.Data, Backend: "qdrant", Server: c.server}); err != nil {
		t.Fatal(err)
	}
	expect.Must(c.memory.Forget(t.Context(), operator(), hits[0].Entry.ID))(t)
	expect.Equal(t, len(s.Points(s.Collections()[0])), 2, "points are left on the server")
	s.Break(standin.Refuse(503))
	if f := examined(); len(f) != 1 || f[0].State != doctor.Broken || f[0].Remedy == "" || strings.Contains(f[0].What, "hunter9") {
		t.Errorf("the doctor says %+v", f)
	}
	if strings.Contains(log.String(), "hunter9") {
		t.Errorf("the key is in the log: %s", log.String())
	}
}

// asOllama is a server that answers like Ollama; loaded 0 = the model is not loaded.
func asOllama(t *testing.T, loaded, trained int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/ps":
			models := ""
			if loaded > 0 {
				models = fmt.Sprintf(`{"name":"m","context_length":%d,"size":10,"size_vram":8}`, loaded)
			}
			fmt.Fprintf(w, `{"models":[%s]}`, models)
		case "/api/show":
			fmt.Fprintf(w, `{"model_info":{"general.architecture":"a","a.context_length":%d}}`, trained)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// botFor is a bot whose model m is at base, with the section context as given.
func botFor(t *testing.T, base, context string) *bot {
	t.Helper()
	return openTest(t, fmt.Sprintf("llm:\n  models:\n    - {name: local, base_url: %q, model: m}\ncontext: {%s}\n", base, context))
}

// TestTierOfAServer: with a running server, on this machine and elsewhere.
func TestTierOfAServer(t *testing.T) {
	tests := []struct {
		name            string
		loaded, trained int
		context         string
		elsewhere       bool
		window, tier    int
		source          window.Origin
		text            string // part of the steps and warnings
	}{
		{"loaded", 16384, 40960, "vram_mib: 81920", false, 16384, 3, window.ByServer, "server: 16384 tokens (ollama /api/ps)"},
		{"loaded, partly beside the GPU", 16384, 40960, "vram_mib: 81920", false, 16384, 3, window.ByServer, "20 % of the model found no room on the GPU"},
		{"not loaded, a GPU here", 0, 131072, "vram_mib: 24564", false, 32768, 4, window.ByMemory, "GPU memory: 32768 tokens (what Ollama loads with 24564 MiB)"},
		{"not loaded, a small model", 0, 16384, "vram_mib: 24564", false, 16384, 3, window.ByMemory, "lowered to 16384 tokens, the model reads no more"},
		{"not loaded, asking is off", 0, 131072, "probe: false", false, 4096, 1, window.ByLeast, "GPU memory: unknown (asking is switched off in the configuration)"},
		{"not loaded, and elsewhere", 0, 131072, "vram_mib: 24564", true, 4096, 1, window.ByLeast, "GPU memory: not looked at (gpu.lan is another machine;"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := botFor(t, asOllama(t, tt.loaded, tt.trained), tt.context)
			gpu := vram.New(vram.Config{Size: 24564 << 20})
			if tt.elsewhere {
				b.cfg.LLM.Models[0].BaseURL = "http://gpu.lan:11434/v1"
				b.window = b.openWindow(gpu)
			}
			b.window.Detect(t.Context())
			r := expect.Must(b.tier(t.Context()))(t)
			if r.Window != tt.window || r.Tier != tt.tier || r.Source != tt.source {
				t.Errorf("window %d, tier %d, from %s", r.Window, r.Tier, r.Source)
			}
			if all := strings.Join(append(r.Steps, r.Warnings...), "\n"); !strings.Contains(all, tt.text) {
				t.Errorf("no %q in\n%s", tt.text, all)
			}
			if !gpu.Last().Asked.IsZero() {
				t.Error("the GPU was asked for a server elsewhere")
			}
		})
	}
}
