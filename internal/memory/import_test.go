package memory

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestImport(t *testing.T) {
	f := openIndex(t)
	lines := "\uFEFF" + strings.Join([]string{
		`{"text":"Anna has a dog","scope":"private:@a:x","subject":"Anna","source":"user_explicit","observed_at":"2025-01-31T18:30:00+01:00","ref":"D1:1","conversation":"c","seq":1,"extra":1}`,
		``,
		"{\"text\":\"two \\n lines\\u0000 and \\\"quotes\\\" 🎂\"}\r",
		`{"text":"seconds","observed_at":1738344600}`, `{"text":"milliseconds","observed_at":1738344600000}`, `{"text":"words","observed_at":"1:56 pm on 8 May, 2023"}`,
		`{"text":"twice"}`, `{"text":"Twice!"}`, `{"text":"twice","seq":2}`,
	}, "\n")
	for run, wantAdded := range []int{7, 0} {
		got := must(importInto(f).Import(t.Context(), "x.jsonl", []byte(lines)))(t)
		if got.Lines != 8 || got.Added != wantAdded || got.Known != 8-wantAdded || !slices.Equal(got.Ignored, []string{"extra"}) {
			t.Errorf("run %d: %+v", run, got)
		}
	}
	hits, err := f.Search(t.Context(), Query{Text: "dog", Scopes: []Scope{"private:@a:x"}})
	if err != nil || len(hits) != 1 {
		t.Fatalf("%+v, %v", hits, err)
	}
	e := hits[0].Entry
	if e.Subject != "Anna" || e.Source != UserExplicit || e.Ref != "D1:1" || e.Conversation != "c" || e.Seq != 1 || e.State != Active ||
		!e.ObservedAt.Equal(time.Date(2025, 1, 31, 17, 30, 0, 0, time.UTC)) {
		t.Errorf("%+v", e)
	}
	for text, at := range map[string]time.Time{
		"seconds": time.Unix(1738344600, 0), "milliseconds": time.Unix(1738344600, 0), "words": time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC), `two lines and "quotes" 🎂`: today,
	} {
		hits, err := f.Search(t.Context(), Query{Text: text, Scopes: []Scope{Shared}, K: 1})
		if err != nil || len(hits) != 1 || hits[0].Entry.Text != text || !hits[0].Entry.ObservedAt.Equal(at) {
			t.Errorf("%s: %+v, %v", text, hits, err)
		}
	}
	var ops int
	if err := f.db.QueryRow(`SELECT count(*) FROM memory_op WHERE op = 'add' AND actor = 'import'`).Scan(&ops); err != nil || ops != 7 {
		t.Errorf("%d operations are written down, %v", ops, err)
	}
}

func TestBadImport(t *testing.T) {
	t.Parallel()
	good := `{"text":"good","ref":"1"}`
	tests := []struct{ line, says string }{
		{`{"text":""}`, "text is missing"}, {`{}`, "text is missing"}, {`{"text":5}`, "text is a number; it must be a string"}, {`[1]`, "no JSON object"}, {`hello`, "no JSON object"},
		{`{"text":"x"`, "no JSON object"}, {`{"text":"x"}}`, "no JSON object"}, {`{"text":"x"} {"text":"y"}`, "no JSON object"}, {`{"text":"x","scope":"everyone"}`, `scope "everyone"`}, {`{"text":"x","scope":"private:"}`, `scope "private:"`},
		{`{"text":"x","source":"me"}`, `source "me"`}, {`{"text":"x","observed_at":"soon"}`, `observed_at "soon"`}, {`{"text":"x","observed_at":true}`, "observed_at true"},
		{`{"text":"x","seq":"a"}`, "seq is a string; it must be a whole number"}, {`{"text":"x","seq":1.5}`, "seq is a number 1.5; it must be a whole number"}, {"{\"text\":\"\xff\"}", "UTF-8"},
		{`{"text":"` + strings.Repeat("x", 100_001) + `"}`, "100001 bytes"}, {`{"text":"` + strings.Repeat("x", 2<<20) + `"}`, "longer than"},
		{`{"text":"other","ref":"1"}`, `ref "1" stands for another text`},
	}
	for _, tt := range tests {
		f := openIndex(t)
		_, err := importInto(f).Import(t.Context(), "x.jsonl", []byte(good+"\n\n"+tt.line+"\n"+good))
		var bad BadLines
		if !errors.As(err, &bad) || len(bad) != 1 || !strings.HasPrefix(err.Error(), "x.jsonl:3: ") || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.60s: %v; want %q", tt.line, err, tt.says)
		}
		want(t, "after "+tt.says, refs(t, f, Query{Text: "good"}))
	}
	_, err := importInto(openIndex(t)).Import(t.Context(), "x.jsonl", []byte(strings.Repeat("bad\n", 30)))
	if bad := (BadLines)(nil); !errors.As(err, &bad) || len(bad) != 30 || !strings.Contains(err.Error(), "and 10 more") {
		t.Errorf("30 bad lines: %v", err)
	}
}

func FuzzImport(f *testing.F) {
	for _, s := range []string{`{"text":"x"}`, `{"text":"x","observed_at":1e400}`, `{"observed_at":-1e300,"text":"x"}`, "\xef\xbb\xbf{}", `{"text":"\ud800"}`, `{"text":"x","seq":99999999999999999999}`} {
		f.Add([]byte(s))
	}
	m := &Importer{Scope: Shared, Now: func() time.Time { return today }}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, _ := m.parse("x", data, map[string]bool{})
		for _, e := range all {
			if e.Text == "" || strings.ContainsAny(e.Text, "\n\x00") || e.Scope.Check() != nil {
				t.Fatalf("%q gives %+v", data, e)
			}
		}
	})
}
