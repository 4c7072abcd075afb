package jsonl

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/memory"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

var today = time.Date(2026, 3, 18, 12, 0, 0, 0, time.UTC)

func open(t testing.TB) *Importer {
	t.Helper()
	dir := t.TempDir()
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	s := expect.Must(memory.Open(t.Context(), memory.Config{DB: db, Dir: dir}))(t)
	return &Importer{Store: s, Scope: memory.Shared, Now: func() time.Time { return today }}
}

// known are all entries of m's store.
func known(t testing.TB, m *Importer) []memory.Entry {
	t.Helper()
	return expect.Must(m.Store.List(t.Context(), memory.Access{All: true}, memory.Filter{}))(t)
}

func TestImport(t *testing.T) {
	m := open(t)
	lines := "\uFEFF" + strings.Join([]string{
		`{"text":"Anna has a dog","scope":"private:@a:x","subject":"Anna","source":"user_explicit","observed_at":"2025-01-31T18:30:00+01:00","ref":"D1:1","conversation":"c","seq":1,"extra":1}`,
		``, "{\"text\":\"two \\n lines\\u0000 and \\\"quotes\\\" 🎂\"}\r", `{"text":"seconds","observed_at":1738344600}`,
		`{"text":"milliseconds","observed_at":1738344600000}`, `{"text":"words","observed_at":"1:56 pm on 8 May, 2023"}`, `{"text":"twice"}`,
		`{"text":"Twice!"}`, `{"text":"twice","seq":2}`,
	}, "\n")
	for run, wantAdded := range []int{7, 0} {
		got := expect.Must(m.Import(t.Context(), "x.jsonl", []byte(lines)))(t)
		expect.False(t, got.Lines != 8 || got.Added != wantAdded || got.Known != 8-wantAdded || (got.Batch != "") != (wantAdded > 0), "run %d: %+v", run, got)
	}
	all := known(t, m)
	expect.Len(t, all, 7, "entries")
	e := all[0]
	if e.Text != "Anna has a dog" || e.Scope != "private:@a:x" || e.Subject != "Anna" || e.Source != memory.UserExplicit || e.Ref != "D1:1" || e.Conversation != "c" || e.Seq != 1 || e.State != memory.Active ||
		!e.ObservedAt.Equal(time.Date(2025, 1, 31, 17, 30, 0, 0, time.UTC)) {
		t.Errorf("%+v", e)
	}
	at := map[string]time.Time{
		"seconds": time.Unix(1738344600, 0), "milliseconds": time.Unix(1738344600, 0), "words": time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC), `two lines and "quotes" 🎂`: today,
	}
	for _, e := range all {
		if when, ok := at[e.Text]; ok && !e.ObservedAt.Equal(when) {
			t.Errorf("%+v", e)
		}
		delete(at, e.Text)
		journal := expect.Must(m.Store.History(t.Context(), memory.Access{All: true}, e.ID))(t)
		expect.False(t, len(journal) != 1 || journal[0].Op != "add" || journal[0].Actor != "import", "the journal has %+v", journal)
	}
	expect.Equal(t, len(at), 0, "texts that are not there")
}

func TestBadImport(t *testing.T) {
	t.Parallel()
	good := `{"text":"good","ref":"1"}`
	tests := []struct{ line, says string }{
		{`{"text":""}`, "text is missing"}, {`{}`, "text is missing"}, {`{"text":5}`, "no JSON object with fields as expected"}, {`[1]`, "no JSON object"}, {`hello`, "no JSON object"},
		{`{"text":"x"`, "no JSON object"}, {`{"text":"x"}}`, "no JSON object"}, {`{"text":"x"} {"text":"y"}`, "no JSON object"}, {`{"text":"x","scope":"everyone"}`, `scope "everyone"`}, {`{"text":"x","scope":"private:"}`, `scope "private:"`},
		{`{"text":"x","source":"me"}`, `source "me"`}, {`{"text":"x","observed_at":"soon"}`, `observed_at "soon"`}, {`{"text":"x","observed_at":true}`, "observed_at true"},
		{`{"text":"x","seq":"a"}`, "no JSON object with fields as expected"}, {`{"text":"x","seq":1.5}`, "no JSON object with fields as expected"}, {"{\"text\":\"\xff\"}", "UTF-8"},
		{`{"text":"` + strings.Repeat("x", 100_001) + `"}`, "100001 bytes"}, {`{"text":"` + strings.Repeat("x", 2<<20) + `"}`, "longer than"},
		{`{"text":"other","ref":"1"}`, `ref "1" stands for another text`},
	}
	for _, tt := range tests {
		m := open(t)
		_, err := m.Import(t.Context(), "x.jsonl", []byte(good+"\n\n"+tt.line+"\n"+good))
		if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.HasPrefix(err.Error(), "x.jsonl:3: ") || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.60s: %v; want %q", tt.line, err, tt.says)
		}
		expect.Len(t, known(t, m), 0, "after "+tt.says)
	}
	_, err := open(t).Import(t.Context(), "x.jsonl", []byte(strings.Repeat("bad\n", 30)))
	if err == nil || strings.Count(err.Error(), "x.jsonl:") != 20 || !strings.Contains(err.Error(), "and 10 more") {
		t.Errorf("30 bad lines: %v", err)
	}
}

func FuzzImport(f *testing.F) {
	for _, s := range []string{`{"text":"x"}`, `{"text":"x","observed_at":1e400}`, `{"observed_at":-1e300,"text":"x"}`, "\xef\xbb\xbf{}", `{"text":"\ud800"}`, `{"text":"x","seq":99999999999999999999}`} {
		f.Add([]byte(s))
	}
	m := &Importer{Scope: memory.Shared, Now: func() time.Time { return today }}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, _, _ := m.parse("x", data)
		for _, e := range all {
			if e.Text == "" || strings.ContainsAny(e.Text, "\n\x00") || e.Scope.Check() != nil {
				t.Fatalf("%q gives %+v", data, e)
			}
		}
	})
}

// TestImportIntegrity: export and import keep the integrity; a line without one is the operator's.
func TestImportIntegrity(t *testing.T) {
	t.Parallel()
	from := open(t)
	for text, of := range map[string]trust.Integrity{"rum": trust.Foreign, "cake": trust.User} {
		_, _, err := from.Store.Add(t.Context(), memory.Entry{Scope: memory.Private("@guest:x"), Text: text, Source: memory.Assistant, Integrity: of}, "assistant")
		expect.OK(t, err)
	}
	var lines bytes.Buffer
	for _, e := range known(t, from) {
		expect.OK(t, json.NewEncoder(&lines).Encode(&e))
	}
	lines.WriteString(`{"text": "tea", "scope": "shared"}` + "\n")
	m := open(t)
	done, err := m.Import(t.Context(), "x", lines.Bytes())
	if err != nil || done.Added != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	want := map[string]trust.Integrity{"rum": trust.Foreign, "cake": trust.User, "tea": trust.Owner}
	for _, e := range known(t, m) {
		journal := expect.Must(m.Store.History(t.Context(), memory.Access{All: true}, e.ID))(t)
		if e.Integrity != want[e.Text] || journal[0].After.Integrity != want[e.Text] {
			t.Errorf("%s is %v, in the journal %v", e.Text, e.Integrity, journal[0].After.Integrity)
		}
	}
	wrong := []byte(`{"text": "gin", "scope": "shared", "integrity": 4}`)
	if _, err := m.Import(t.Context(), "x", wrong); err == nil || !strings.Contains(err.Error(), "integrity 4") {
		t.Errorf("%v", err)
	}
}
