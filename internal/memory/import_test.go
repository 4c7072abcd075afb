package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/memory/lines"
	"reverie/internal/test/expect"
)

func TestImport(t *testing.T) {
	f := openIndex(t)
	lines := "\uFEFF" + strings.Join([]string{
		`{"text":"Anna has a dog","scope":"private:@a:x","subject":"Anna","source":"user_explicit","observed_at":"2025-01-31T18:30:00+01:00","ref":"D1:1","conversation":"c","seq":1,"extra":1}`,
		``, "{\"text\":\"two \\n lines\\u0000 and \\\"quotes\\\" 🎂\"}\r", `{"text":"seconds","observed_at":1738344600}`,
		`{"text":"milliseconds","observed_at":1738344600000}`, `{"text":"words","observed_at":"1:56 pm on 8 May, 2023"}`, `{"text":"twice"}`,
		`{"text":"Twice!"}`, `{"text":"twice","seq":2}`,
	}, "\n")
	for run, wantAdded := range []int{7, 0} {
		got := expect.Must(importInto(f).Import(t.Context(), "x.jsonl", []byte(lines)))(t)
		expect.False(t, got.Lines != 8 || got.Added != wantAdded || got.Known != 8-wantAdded, "run %d: %+v", run, got)
	}
	hits := expect.Must(f.Search(t.Context(), Query{Text: "dog", Scopes: []Scope{"private:@a:x"}}))(t)
	expect.Len(t, hits, 1, "it")
	e := hits[0].Entry
	if e.Subject != "Anna" || e.Source != UserExplicit || e.Ref != "D1:1" || e.Conversation != "c" || e.Seq != 1 || e.State != Active ||
		!e.ObservedAt.Equal(time.Date(2025, 1, 31, 17, 30, 0, 0, time.UTC)) {
		t.Errorf("%+v", e)
	}
	for text, at := range map[string]time.Time{
		"seconds": time.Unix(1738344600, 0), "milliseconds": time.Unix(1738344600, 0), "words": time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC), `two lines and "quotes" 🎂`: today,
	} {
		hits, err := f.Search(t.Context(), Query{Text: text, Scopes: []Scope{Shared}, K: 1})
		expect.False(t, err != nil || len(hits) != 1 || hits[0].Entry.Text != text || !hits[0].Entry.ObservedAt.Equal(at), "%s: %+v, %v", text, hits, err)
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
		{`{"text":""}`, "text is missing"}, {`{}`, "text is missing"}, {`{"text":5}`, "no JSON object with fields as expected"}, {`[1]`, "no JSON object"}, {`hello`, "no JSON object"},
		{`{"text":"x"`, "no JSON object"}, {`{"text":"x"}}`, "no JSON object"}, {`{"text":"x"} {"text":"y"}`, "no JSON object"}, {`{"text":"x","scope":"everyone"}`, `scope "everyone"`}, {`{"text":"x","scope":"private:"}`, `scope "private:"`},
		{`{"text":"x","source":"me"}`, `source "me"`}, {`{"text":"x","observed_at":"soon"}`, `observed_at "soon"`}, {`{"text":"x","observed_at":true}`, "observed_at true"},
		{`{"text":"x","seq":"a"}`, "no JSON object with fields as expected"}, {`{"text":"x","seq":1.5}`, "no JSON object with fields as expected"}, {"{\"text\":\"\xff\"}", "UTF-8"},
		{`{"text":"` + strings.Repeat("x", 100_001) + `"}`, "100001 bytes"}, {`{"text":"` + strings.Repeat("x", 2<<20) + `"}`, "longer than"},
		{`{"text":"other","ref":"1"}`, `ref "1" stands for another text`},
	}
	for _, tt := range tests {
		f := openIndex(t)
		_, err := importInto(f).Import(t.Context(), "x.jsonl", []byte(good+"\n\n"+tt.line+"\n"+good))
		if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.HasPrefix(err.Error(), "x.jsonl:3: ") || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.60s: %v; want %q", tt.line, err, tt.says)
		}
		want(t, "after "+tt.says, refs(t, f, Query{Text: "good"}))
	}
	_, err := importInto(openIndex(t)).Import(t.Context(), "x.jsonl", []byte(strings.Repeat("bad\n", 30)))
	if err == nil || strings.Count(err.Error(), "x.jsonl:") != 20 || !strings.Contains(err.Error(), "and 10 more") {
		t.Errorf("30 bad lines: %v", err)
	}
}

func FuzzImport(f *testing.F) {
	for _, s := range []string{`{"text":"x"}`, `{"text":"x","observed_at":1e400}`, `{"observed_at":-1e300,"text":"x"}`, "\xef\xbb\xbf{}", `{"text":"\ud800"}`, `{"text":"x","seq":99999999999999999999}`} {
		f.Add([]byte(s))
	}
	m := &Importer{Scope: Shared, Now: func() time.Time { return today }}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, _ := m.parse("x", data)
		for _, e := range all {
			if e.Text == "" || strings.ContainsAny(e.Text, "\n\x00") || e.Scope.Check() != nil {
				t.Fatalf("%q gives %+v", data, e)
			}
		}
	})
}

func newImporter(s *Store) *Importer {
	return &Importer{Store: s, Scope: Private(owner), Now: func() time.Time { return today }}
}

func sound(t testing.TB, s *Store) {
	t.Helper()
	expect.OK(t, indexIsSound(t, OpenFTS(s.db)))
}

// What is imported stands in the file, with what a person wrote there meanwhile;
// the lines of a conversation are only found.
func TestImportedIntoFiles(t *testing.T) {
	s := openAt(t, t.TempDir())
	add(t, s, Private(owner), "tea is green")
	put(t, s, Private(owner), onDisk(t, s, Private(owner))+"by hand\n")
	got, err := newImporter(s).Import(t.Context(), "x", []byte(`{"text":"a heron is grey"}
{"text":"we saw a heron","conversation":"c","seq":1}
{"text":"really?","conversation":"c","seq":2}
{"text":"by hand"}
{"text":"tea is green","conversation":"c","seq":3}`))
	if err != nil || got.Added != 4 || got.Known != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	const all = "tea is green|by hand|a heron is grey"
	expect.Equal(t, texts(t, s, Private(owner)), all, "known")
	expect.Equal(t, strings.Join(lines.Texts([]byte(onDisk(t, s, Private(owner)))), "|"), all, "in the file")
	hits, err := OpenFTS(s.db).Search(t.Context(), Query{Text: "saw a heron", Scopes: []Scope{Private(owner)}})
	expect.False(t, err != nil || len(hits) < 2 || hits[0].Entry.Text != "we saw a heron", "%+v, %v", hits, err)
	// A person who writes or says what somebody said in a conversation notes it.
	put(t, s, Private(owner), onDisk(t, s, Private(owner))+"we saw a heron\n")
	if got := texts(t, s, Private(owner)); got != all+"|we saw a heron" || !add(t, s, Private(owner), "really?") {
		t.Errorf("known: %q", got)
	}
	expect.Equal(t, strings.Join(lines.Texts([]byte(onDisk(t, s, Private(owner)))), "|"), all+"|we saw a heron|really?", "in the file")
	sound(t, s)
}

// A whole import is one step back, whatever it was stored in.
// Holds W9.
func TestImportIsUndone(t *testing.T) {
	s := openAt(t, t.TempDir())
	add(t, s, Private(owner), "tea is green")
	lines := ""
	for n := range 10 {
		lines += fmt.Sprintf("{\"text\":\"fact number %d\"}\n{\"text\":\"line %d\",\"conversation\":\"c\",\"seq\":%d,\"scope\":\"shared\"}\n", n, n, n)
	}
	got, err := newImporter(s).Import(t.Context(), "x", []byte(lines))
	if err != nil || got.Added != 20 || got.Batch == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	u, err := s.Undo(t.Context(), everything, "")
	if err != nil || u.Of != got.Batch || len(u.Away) != 20 {
		t.Fatalf("%+v, %v", u, err)
	}
	expect.Equal(t, texts(t, s, Private(owner), Shared), "tea is green", "known")
	expect.Lacks(t, onDisk(t, s, Private(owner)), "number")
	sound(t, s)
	expect.Must(s.Undo(t.Context(), everything, u.Batch))(t)
	expect.Len(t, expect.Must(s.List(t.Context(), everything, Filter{}))(t), 21, "entries after the undoing was undone")
	sound(t, s)
	expect.Equal(t, len((Undone{Away: make([]Entry, 1000)}).Lines()), maxUndone+1, "1000 entries are told of in lines")
}

// Who took an import back and imports the file again has it again. What a person put
// away stays away, and what was to be forgotten stays forgotten.
// Holds W8.
func TestImportOfWhatWasUndone(t *testing.T) {
	t.Parallel()
	const lines = `{"text":"the boat is blue","ref":"1"}
{"text":"the heron is grey"}
{"text":"the safe is green","conversation":"c","seq":1}
{"text":"the tea is cold"}`
	s := openAt(t, t.TempDir())
	again := func(added, known, forgotten int) string {
		t.Helper()
		got, err := newImporter(s).Import(t.Context(), "x", []byte(lines))
		if err != nil || got.Added != added || got.Known != known || got.Forgotten != forgotten {
			t.Fatalf("%+v, %v", got, err)
		}
		sound(t, s)
		return got.Batch
	}
	undo := func(batch string) string {
		t.Helper()
		u := expect.Must(s.Undo(t.Context(), everything, batch))(t)
		return u.Batch
	}
	one := func(words string) string {
		t.Helper()
		found, _, err := s.Find(t.Context(), everything, words)
		if err != nil || len(found) != 1 {
			t.Fatalf("%q: %+v, %v", words, found, err)
		}
		return found[0].ID
	}
	batch := again(4, 0, 0)
	again(0, 4, 0)
	undo(batch)
	if got := texts(t, s, Private(owner)); got != "" {
		t.Fatalf("after the undoing: %q", got)
	}
	again(4, 0, 0)
	expect.Equal(t, texts(t, s, Private(owner)), "the boat is blue|the heron is grey|the tea is cold", "known")
	expect.OK(t, s.Retire(t.Context(), everything, one("heron")))
	again(0, 4, 0)
	expect.Must(s.Forget(t.Context(), everything, one("tea")))(t)
	again(0, 3, 1)
	// What was put away, fetched back and put away again by undoing that, was
	// put away by a person all the same.
	expect.OK(t, s.Retire(t.Context(), everything, one("boat")))
	undo(undo(""))
	again(0, 3, 1)
	expect.Equal(t, texts(t, s, Private(owner)), "", "known at the end")
}
