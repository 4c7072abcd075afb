package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"reverie/internal/search"
	"reverie/internal/search/vector"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

var today = time.Date(2026, 3, 18, 12, 0, 0, 0, time.UTC) // a Wednesday

func openIndex(t testing.TB) *FTS {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	return OpenFTS(db)
}

func storeOf(f *FTS) *Store {
	var file string
	err := f.db.QueryRow(`SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file)
	s, also := Open(context.Background(), Config{DB: f.db, Dir: filepath.Dir(file)})
	if err = errors.Join(err, also); err != nil {
		panic(err)
	}
	return s
}

// imported adds lines of JSON, of scope unless they name another, and says how many.
func imported(t testing.TB, s *Store, scope Scope, lines string) (added, known, forgotten int, batch string) {
	t.Helper()
	var all []Entry
	for d := json.NewDecoder(strings.NewReader(lines)); d.More(); {
		l := struct {
			Entry
			At string `json:"observed_at"`
		}{Entry: Entry{Scope: scope, Source: Imported, Integrity: trust.Owner, ObservedAt: today}}
		expect.OK(t, d.Decode(&l))
		if len(l.At) == len(time.DateOnly) {
			l.At += "T00:00:00Z"
		}
		if l.At != "" {
			l.ObservedAt = expect.Must(time.Parse(time.RFC3339, l.At))(t)
		}
		all = append(all, l.Entry)
	}
	learned, batch, err := s.Import(t.Context(), all)
	expect.OK(t, err)
	for _, l := range learned {
		switch {
		case l.Added:
			added++
		case l.Refused != nil:
			forgotten++
		default:
			known++
		}
	}
	return added, known, forgotten, batch
}

// remember imports lines of JSON.
func remember(t testing.TB, f *FTS, lines ...string) {
	t.Helper()
	imported(t, storeOf(f), Shared, strings.Join(lines, "\n"))
}

// alter runs a statement on memory and tells the index, in one transaction.
func alter(t testing.TB, f *FTS, statement string, ref string) {
	t.Helper()
	tx := expect.Must(f.db.BeginTx(t.Context(), nil))(t)
	defer tx.Rollback()
	var n int64
	var hash string
	expect.OK(t, tx.QueryRowContext(t.Context(), `SELECT n, hash FROM memory WHERE ref = ?`, ref).Scan(&n, &hash))
	expect.Must(tx.ExecContext(t.Context(), `UPDATE memory SET rev = rev + 1, `+statement+` WHERE n = ?`, n))(t)
	expect.Must(tx.ExecContext(t.Context(), `INSERT INTO memory_op (batch, at, actor, op, entry) SELECT 'b', 0, 'test', 'note', id FROM memory WHERE n = ?`, n))(t)
	expect.OK(t, errors.Join(vector.Forget(t.Context(), tx, hash), f.Update(t.Context(), tx, n), tx.Commit()))
}

// refs are what a question finds, the best first.
func refs(t testing.TB, x index, q Query) []string {
	t.Helper()
	if q.Scopes == nil {
		q.Scopes = []Scope{Shared}
	}
	out := []string{}
	for _, h := range expect.Must(x.Search(t.Context(), q))(t) {
		if h.Turn != nil {
			out = append(out, h.Turn.Event)
		} else {
			out = append(out, h.Entry.Ref)
		}
	}
	return out
}

// each runs a test with every member of the table, and at its end asks whether
// the index is as it should be.
func each(t *testing.T, test func(t *testing.T, f *FTS, x index)) {
	for _, member := range table {
		t.Run(member.name, func(t *testing.T) {
			f := openIndex(t)
			x := member.open(t, f)
			test(t, f, x)
			for _, i := range []index{f, x} {
				if c, ok := i.(read); ok {
					expect.OK(t, c.Complete(t.Context()))
				}
			}
			expect.OK(t, indexIsSound(t, f))
		})
	}
}

func want(t testing.TB, what string, got []string, wanted ...string) {
	t.Helper()
	expect.EqualSlice(t, got, wanted, what)
}

func TestScopesOfSearch(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		remember(t, f,
			`{"text":"the dentist is on Friday","scope":"private:@a:x","ref":"a","conversation":"c","seq":1}`,
			`{"text":"the dentist is on Monday","scope":"private:@b:x","ref":"b","conversation":"c","seq":2}`,
			`{"text":"the dentist is closed","scope":"room:!r:x","ref":"r","conversation":"c","seq":3}`,
			`{"text":"dentists are dear","ref":"s"}`)
		q := Query{Text: "when is the dentist"}
		for scopes, found := range map[string]string{
			"private:@a:x": "a", "private:@b:x": "b", "room:!r:x": "r", "shared": "s", "private:@a:x shared": "a s", "room:!r:x shared": "r s",
			"private:@c:x": "", "": "", "private:": "", "private:@a": "", "private:%": "", "nothing": "",
		} {
			q.Scopes = []Scope{}
			for s := range strings.FieldsSeq(scopes) {
				q.Scopes = append(q.Scopes, Scope(s))
			}
			got := refs(t, x, q)
			slices.Sort(got)
			want(t, scopes, got, strings.Fields(found)...)
		}
	})
}

// A neighbour in another scope is none: nothing of it, not even that it fits,
// may be seen in a search.
// Holds S1.
func TestNeighboursKeepToTheirScope(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		remember(t, f,
			`{"text":"my secret is the submarine","scope":"private:@a:x","ref":"a","conversation":"c","seq":1}`,
			`{"text":"good morning all","scope":"room:!r:x","ref":"r","conversation":"c","seq":2}`)
		want(t, "the room", refs(t, x, Query{Text: "submarine secret", Scopes: []Scope{"room:!r:x"}}))
		hits, err := x.Search(t.Context(), Query{Text: "good submarine", Scopes: []Scope{"room:!r:x"}})
		expect.False(t, err != nil || len(hits) != 1 || hits[0].Covered > .9, "the room's line counts as saying what its neighbour elsewhere says: %+v, %v", hits, err)
		alter(t, f, `scope = 'room:!r:x'`, "a")
		want(t, "after it was shared", refs(t, x, Query{Text: "submarine secret", Scopes: []Scope{"room:!r:x"}}), "a", "r")
		want(t, "where it was", refs(t, x, Query{Text: "submarine secret", Scopes: []Scope{"private:@a:x"}}))
	})
}

func TestPronounsAreFoundByTheirNeighbours(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		remember(t, f,
			`{"text":"Do you still have the cello?","subject":"Ben","ref":"1","conversation":"c","seq":1}`,
			`{"text":"No, I sold it for 900 in June.","subject":"Anna","ref":"2","conversation":"c","seq":2}`,
			`{"text":"Nice weather today","subject":"Ben","ref":"3","conversation":"d","seq":1}`)
		want(t, "the cello", refs(t, x, Query{Text: "How much did Anna get for the cello?", K: 1}), "2")
	})
}

func TestWordsInAnyForm(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		remember(t, f,
			`{"text":"Ich habe gestern ein rotes Fahrrad gekauft","ref":"de"}`, `{"text":"Müller wohnt im Haus","ref":"umlaut"}`,
			`{"text":"我养了一只猫，名字叫团子","ref":"zh"}`, `{"text":"Маша купила новую машину в Казани","ref":"ru"}`,
			`{"text":"O meu irmão mora em Coimbra com dois cães","ref":"pt"}`, `{"text":"Mi hermana vive en Córdoba","ref":"es"}`,
			`{"text":"The door code is 4711-B","ref":"code"}`, `{"text":"Jo likes tea","ref":"jo"}`, `{"text":"Katzen","ref":"one"}`)
		for question, ref := range map[string]string{
			"Was hat sie gekauft, welche Fahrräder?": "de", "mueller": "umlaut", "MULLER": "umlaut", "你的猫叫什么": "zh", "猫": "zh", "кто купил машины": "ru",
			"onde mora o cão": "pt", "cordoba": "es", "4711": "code", "Jo": "jo", "die Katze": "one", "córdoba": "es",
		} {
			if got := refs(t, x, Query{Text: question}); len(got) == 0 || got[0] != ref {
				t.Errorf("%s: %q, want %s first", question, got, ref)
			}
		}
	})
}

func TestTimesOfSearch(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		remember(t, f,
			`{"text":"choir was loud","ref":"old","observed_at":"2025-05-08"}`, `{"text":"choir was fine","ref":"march","observed_at":"2026-03-10T20:00:00Z"}`,
			`{"text":"choir was short","ref":"yesterday","observed_at":"2026-03-17T20:00:00Z"}`)
		for question, ref := range map[string]string{
			"how was the choir yesterday": "yesterday", "how was the choir last week": "march", "how was choir in May 2025": "old",
			"wie war choir letzte Woche": "march", "choir on 2025-05-08": "old",
		} {
			if got := refs(t, x, Query{Text: question, Now: today}); len(got) == 0 || got[0] != ref {
				t.Errorf("%s: %q, want %s first", question, got, ref)
			}
		}
		want(t, "no words of their own", refs(t, x, Query{Text: "what was yesterday", Now: today}), "yesterday")
	})
}

func TestResultLimit(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		var lines []string
		for i := range 30 {
			lines = append(lines, fmt.Sprintf(`{"text":"apple number %d","ref":"%d"}`, i, i))
		}
		remember(t, f, append(lines, `{"text":"apple `+strings.Repeat("long story ", 200)+`","ref":"long"}`)...)
		for _, tt := range []struct{ k, hits int }{{0, 10}, {3, 3}, {100, 31}} {
			expect.Len(t, refs(t, x, Query{Text: "apple", K: tt.k}), tt.hits, fmt.Sprint("k ", tt.k))
		}
	})
}

// Small talk must not bring up memories.
// Holds W1, W5.
func TestFloor(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		remember(t, f, `{"text":"Anna keeps bees on the roof","ref":"bees"}`, `{"text":"good coffee is at the station","ref":"coffee"}`, `{"text":"the roof leaks","ref":"roof"}`)
		for question, found := range map[string]int{
			"does Anna still keep bees?": 1, "good morning, how was the tournament in Vienna?": 0, "thank you so much": 0, "explain quantum chromodynamics on a roof in simple terms": 0,
		} {
			if got := refs(t, x, Query{Text: question, Floor: search.DefaultFloor}); (len(got) > 0) != (found > 0) {
				t.Errorf("%s: %q", question, got)
			}
		}
		remember(t, f, `{"text":"Lena, Oskar, Martha and Peter sold honey, wax and candles in Bonn, Kiel, Ulm, Graz and Jena","ref":"honey"}`)
		long := Query{Text: "leaks, Lena, Oskar, Martha, Peter, honey, wax, candles, Bonn, Kiel, Ulm, Graz, Jena"}
		want(t, "a word of many", refs(t, x, long), "honey", "roof")
		long.Floor = search.DefaultFloor
		want(t, "… is too little", refs(t, x, long), "honey")
	})
}

func TestStatesOfSearch(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		remember(t, f, `{"text":"Anna lives in Bonn","ref":"bonn","conversation":"c","seq":1,"subject":"Ben"}`, `{"text":"she lives in Kiel now, Anna","ref":"kiel","conversation":"c","seq":2,"subject":"Ben"}`)
		q := Query{Text: "where does Anna live, Bonn?"}
		alter(t, f, `state = 'superseded'`, "bonn")
		want(t, "superseded", refs(t, x, q), "kiel")
		q.Past = true
		want(t, "and asked for", refs(t, x, q), "kiel", "bonn")
		alter(t, f, `state = 'active'`, "bonn")
		expect.Equal(t, refs(t, x, q)[0], "bonn", "restored")
		alter(t, f, `state = 'merged'`, "bonn")
		want(t, "merged", refs(t, x, Query{Text: "Bonn", Past: true}))
		alter(t, f, `state = 'forgotten', text = '', conversation = '', subject = ''`, "kiel")
		want(t, "forgotten", refs(t, x, Query{Text: "Kiel Anna", Past: true}))
	})
}

func TestTurns(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		remember(t, f, `{"text":"Ben has a boat","ref":"fact"}`)
		for i, text := range []string{"I bought a boat", "oh, how large is it?", "seven metres, with a mast", "and its name?", "Nemo"} {
			turn := Turn{Scope: Shared, Event: fmt.Sprint("$", i), Sender: "@ben:x", At: today.Add(time.Duration(i) * time.Minute), Conversation: "room", Seq: i, Text: text}
			expect.OK(t, f.IndexTurns(t.Context(), turn))
		}
		want(t, "without turns", refs(t, x, Query{Text: "boat"}), "fact")
		q := Query{Text: "how many metres is the boat of Ben, with the mast", Scopes: []Scope{Shared}, Turns: true, K: 1}
		hits, err := x.Search(t.Context(), q)
		if err != nil || len(hits) != 1 || hits[0].Turn == nil || hits[0].Turn.Event != "$2" {
			t.Fatalf("%+v, %v", hits, err)
		}
		if a := hits[0].Around; len(a) != 2 || a[0].Event != "$1" || a[1].Event != "$3" {
			t.Errorf("around: %+v", a)
		}
		expect.OK(t, f.IndexTurns(t.Context(), Turn{Scope: Shared, Event: "$2", Sender: "@ben:x", At: today, Conversation: "room", Seq: 2, Text: "nine metres"}))
		want(t, "after an edit", refs(t, x, Query{Text: "mast", Turns: true}))
		expect.OK(t, f.Unhear(t.Context(), "$0"))
		want(t, "taken back", refs(t, x, Query{Text: "bought boat", Turns: true}), "fact")
	})
}

// What the asker sees anyway takes no place of other hits, however well it fits.
func TestSeenTurnsTakeNoPlace(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		for i := range 40 {
			turn := Turn{Scope: Shared, Event: fmt.Sprint("$", i), Sender: "@ben:x", At: today.Add(time.Duration(i) * time.Minute), Conversation: "old", Seq: i, Text: "my boat"}
			if i >= 5 {
				turn.Conversation, turn.Text = "room", "the mast of my green boat"
			}
			expect.OK(t, f.IndexTurns(t.Context(), turn))
		}
		q := Query{Text: "the mast of my green boat", Turns: true, K: 3, Seen: search.Seen{Conversation: "room", From: 10}}
		got := map[string]int{}
		for _, event := range refs(t, x, q) {
			n := expect.Must(strconv.Atoi(event[1:]))(t)
			got[map[bool]string{true: "seen", false: "unseen"}[n >= 10]]++
		}
		expect.NoDiff(t, got, map[string]int{"seen": 3, "unseen": 3}, "hits")
	})
}

// TestRebuild: rebuilding a damaged index restores it exactly.
// Holds L2.
func TestRebuild(t *testing.T) {
	t.Parallel()
	f := openIndex(t)
	var lines []string
	for i := range 50 {
		lines = append(lines, fmt.Sprintf(`{"text":"apple %d is red","ref":"%d","conversation":"c%d","seq":%d}`, i, i, i/10, i))
	}
	remember(t, f, lines...)
	expect.OK(t, f.IndexTurns(t.Context(), Turn{Scope: Shared, Event: "$1", Text: "hello", At: today, Conversation: "c"}))
	was := indexDump(t, f)
	for _, damage := range []string{`DELETE FROM index_doc WHERE doc = -1`, `DELETE FROM index_fts WHERE rowid IN (SELECT max(row) FROM index_doc)`,
		`UPDATE index_term SET df = df + 1 WHERE term = 'appl'`, `INSERT INTO index_fts (rowid, body) VALUES (7, 'alone')`, `UPDATE index_scope SET docs = 3`,
		`DELETE FROM index_fts_data WHERE id > 10`, `UPDATE index_doc SET body = 'plum' WHERE row IN (SELECT min(row) FROM index_doc)`} {
		if _, err := f.db.Exec(damage); err != nil {
			t.Fatalf("%s: %v", damage, err)
		}
		expect.False(t, slices.Equal(was, indexDump(t, f)), "%s is not seen", damage)
		expect.Must(f.Rebuild(t.Context()))(t)
		if now := indexDump(t, f); !slices.Equal(was, now) {
			t.Errorf("%s, made anew: %q, want %q", damage, now, was)
		}
	}
}

// TestRerank: hits are sorted as the model says, which reads what is in the scopes of the query only.
func TestRerank(t *testing.T) {
	t.Parallel()
	f := openIndex(t)
	s := storeOf(f)
	remember(t, f, `{"text":"a green heron at the weir","ref":"1"}`, `{"text":"a heron at the weir","ref":"2"}`, `{"text":"the heron flew off","ref":"3"}`)
	_, _, err := s.Add(t.Context(), Entry{Scope: Private(owner), Text: "a secret heron at the weir", Source: UserExplicit, Integrity: trust.Owner}, owner)
	expect.OK(t, err)
	q := Query{Text: "green heron at the weir", Scopes: []Scope{Shared}}
	find := func() (texts []string) {
		for _, h := range expect.Must(s.Search(t.Context(), q))(t) {
			texts = append(texts, h.Text())
		}
		return texts
	}
	plain := find()
	expect.Len(t, plain, 3)
	var read []string
	var fault error
	s.rerank = func(_ context.Context, question string, texts []string) (order []int, _ error) {
		expect.Equal(t, question, q.Text)
		for i := range texts {
			order = append(order, len(texts)-1-i)
		}
		read = texts
		return order, fault
	}
	expect.EqualSlice(t, find(), []string{plain[2], plain[1], plain[0]})
	expect.EqualSlice(t, read, plain, "what the model read")
	fault = errors.New("out of memory")
	expect.EqualSlice(t, find(), plain, "while the model fails")
}

// indexDump is all that the index of words holds, a line each, and what SQLite says of it.
func indexDump(t testing.TB, f *FTS) []string {
	t.Helper()
	var said []string
	if _, err := f.db.Exec(`INSERT INTO index_fts (index_fts, rank) VALUES ('integrity-check', 1)`); err != nil { // 1 = with the texts
		said = append(said, err.Error())
	}
	held, err := store.Column[string](t.Context(), f.db, `SELECT * FROM (
		SELECT 'text ' || d.doc || ' in ' || coalesce(s.scope, '') || ', ' || (d.row >> 36 & 7) || ' ' || d.rev || ' ' || d.body || ' ' || d.day || ' ' || d.subject FROM index_doc AS d
			LEFT JOIN index_scope AS s ON s.no = d.row >> 39
		UNION ALL SELECT 'scope ' || scope || ' ' || docs || ' ' || words FROM index_scope WHERE docs > 0
		UNION ALL SELECT 'term ' || t.term || ' in ' || s.scope || ' ' || t.df FROM index_term AS t JOIN index_scope AS s ON s.no = t.scope WHERE t.df > 0
		UNION ALL SELECT k || ' ' || v FROM index_fts_config WHERE v <> 0) ORDER BY 1`)
	expect.OK(t, err)
	return append(held, said...)
}

// indexIsSound compares the full-text index with a rebuilt one.
func indexIsSound(t testing.TB, f *FTS) error {
	t.Helper()
	was := indexDump(t, f)
	expect.Must(f.Rebuild(t.Context()))(t)
	if now := indexDump(t, f); !slices.Equal(was, now) {
		return fmt.Errorf("the index held %q, and %q made anew", was, now)
	}
	return nil
}

// hostile are questions that break a careless index.
var hostile = []string{
	"", " ", "\x00", "\xff\xfe", `"`, `'`, `""" OR "`, "a AND", "NEAR(a b, 2)", "body:secret", "{near}: x", "* ^ -", "foo-bar", "who's at 17:30?", "(((", "🎂🎂", "-1", "?",
	"the", "of the and", strings.Repeat("apple ", 5000), strings.Repeat("x", 100_000), "SELECT * FROM memory; DROP TABLE memory", "柏林", "e\u0301", "%s%d", "\u202e", "rowid", "index_fts",
}

// Holds W2.
func TestAnyTextIsAQuestion(t *testing.T) {
	each(t, func(t *testing.T, f *FTS, x index) {
		remember(t, f, `{"text":"apple body near secret select","ref":"1"}`, `{"text":"who's at 17:30","ref":"2"}`)
		for _, text := range hostile {
			if _, err := x.Search(t.Context(), Query{Text: text, Context: text, Scopes: []Scope{Shared}, Now: today, Turns: true, Past: true}); err != nil {
				t.Errorf("%.40q: %v", text, err)
			}
		}
	})
}

// Holds W2.
func FuzzSearch(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	ix := openIndex(f)
	remember(f, ix, `{"text":"apple body near secret select","ref":"1","conversation":"c"}`, `{"text":"who's at 17:30 on May 8","ref":"2","conversation":"c"}`)
	hybrid := joined(f, ix)
	f.Fuzz(func(t *testing.T, text string) {
		for _, x := range []index{ix, hybrid} {
			hits := expect.Must(x.Search(context.Background(), Query{Text: text, Context: text, Scopes: []Scope{Shared}, Now: today}))(t)
			for _, h := range hits {
				if h.Covered < 0 || h.Covered > 1.001 {
					t.Fatalf("%v of the question is covered", h.Covered)
				}
			}
		}
	})
}

// TestLongTextsInIndex: a long message, and the texts beside it, leave the index
// without damage. SQLite's secure-delete did not manage that.
func TestLongTextsInIndex(t *testing.T) {
	f := openIndex(t)
	for i := range 4 {
		long := fmt.Sprintf("hear heron%d", i) + strings.Repeat("\nI go on about the weather, which is fine today.", 400)
		for j, text := range []string{long, fmt.Sprintf("I know of heron%d", i)} {
			turn := Turn{Scope: Shared, Event: fmt.Sprintf("$%d.%d", i, j), Sender: []string{"@a:x", ""}[j], Conversation: "c", Seq: 2*i + j + 1, Text: text}
			expect.OK(t, f.IndexTurns(t.Context(), turn))
		}
	}
	for _, event := range []string{"$2.0", "$2.1", "$0.0"} {
		expect.OK(t, f.Unhear(t.Context(), event))
		expect.OK(t, indexIsSound(t, f))
	}
}

func filled(t *testing.T) *Store {
	t.Helper()
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: "fts5"})
	for n := range 6 {
		add(t, s, Private(owner), fmt.Sprintf("the heron number %d is grey", n))
		expect.OK(t, s.IndexTurns(t.Context(), Turn{Scope: Private(owner), Event: fmt.Sprint("$", n), Sender: owner, Text: fmt.Sprintf("the boat number %d", n), At: today, Conversation: "c", Seq: n}))
	}
	return s
}

// An index that is cut off while it is made leaves the old one as it was, and others wait
// for it and are in it.
func TestInterruptedRebuild(t *testing.T) {
	s := filled(t)
	expect.Must(s.db.Exec(`CREATE TRIGGER cut BEFORE INSERT ON index_doc WHEN new.doc < 0 BEGIN SELECT raise(ABORT, 'cut off'); END`))(t)
	_, err := s.index.Rebuild(t.Context()) // the messages were still to come
	expect.False(t, err == nil, "it was not cut off")
	expect.Must(s.db.Exec(`DROP TRIGGER cut`))(t)
	sound(t, s)
	said := make(chan error, 1)
	// go: it ends when the index is made, and is waited for
	go func() {
		said <- s.IndexTurns(t.Context(), Turn{Scope: Private(owner), Event: "$9", Sender: owner, Text: "the pelican is white", At: today, Conversation: "c", Seq: 9})
	}()
	expect.Must(s.index.Rebuild(t.Context()))(t)
	expect.OK(t, <-said)
	sound(t, s)
	if hits, err := OpenFTS(s.db).Search(t.Context(), Query{Text: "pelican", Scopes: []Scope{Private(owner)}, Turns: true}); err != nil || len(hits) == 0 || hits[0].Turn == nil {
		t.Errorf("%+v, %v", hits, err)
	}
}

// An index that an upgrade left empty is made at the start.
func TestEmptyIndexIsRebuilt(t *testing.T) {
	s := filled(t)
	expect.Must(s.db.Exec(`DELETE FROM index_doc`))(t)
	again := expect.Must(Open(t.Context(), Config{DB: s.db, Dir: s.dir, Owner: owner}))(t)
	sound(t, again)
}

// TestSearchBefore: a hit comes with what it replaced, and without what replaced nothing or is out of use.
func TestSearchBefore(t *testing.T) {
	s := openAt(t, t.TempDir())
	put(t, s, Shared, "Jana lives in Bonn\nJana lives in Rome\nJana lives near the river\n")
	all := expect.Must(s.WorkingSet(t.Context(), Shared))(t)
	expect.Must(s.Supersede(t.Context(), everything, all[0].ID, "Jana lives in Berlin"))(t)
	expect.OK(t, s.Retire(t.Context(), everything, all[1].ID))
	before := map[string]string{}
	for _, h := range expect.Must(s.Search(t.Context(), Query{Text: "Where does Jana live?", Scopes: []Scope{Shared}}))(t) {
		before[h.Text()] = ""
		for _, e := range h.Until {
			before[h.Text()] += e.Text
		}
	}
	expect.Equal(t, fmt.Sprint(before), "map[Jana lives in Berlin:Jana lives in Bonn Jana lives near the river:]", "found")
}

// TestSearchBothSides: an entry comes with one that contradicts it in its scope, until a person has decided.
func TestSearchBothSides(t *testing.T) {
	s := openAt(t, t.TempDir())
	put(t, s, Shared, "Jana has a cat named Mimi\nJana keeps no pets because of an allergy\nJana likes tea\n")
	all := expect.Must(s.WorkingSet(t.Context(), Shared))(t)
	expect.Must(s.db.Exec(`INSERT INTO memory_question (run, scope, first, second, why) VALUES ('', ?1, ?2, ?3, ''), ('', ?1, ?2, 'gone', '')`, Shared, all[0].ID, all[1].ID))(t)
	sides := func(question string) (found string) {
		for _, h := range expect.Must(s.Search(t.Context(), Query{Text: question, Scopes: []Scope{Shared}, K: 1}))(t) {
			found += h.Line(time.UTC, nil)
		}
		return found[strings.Index(found, ": ")+2:]
	}
	today := all[0].ObservedAt.UTC().Format("2006-01-02")
	expect.Equal(t, sides("What is the cat named?"), "Jana has a cat named Mimi (against that, "+today+": Jana keeps no pets because of an allergy)", "one side")
	expect.Equal(t, sides("Why no pets, an allergy?"), "Jana keeps no pets because of an allergy (against that, "+today+": Jana has a cat named Mimi)", "the other")
	expect.Equal(t, sides("Who likes tea?"), "Jana likes tea", "nothing against it")
	expect.Must(s.db.Exec(`UPDATE memory_question SET both_hold = 1`))(t)
	expect.Equal(t, sides("What is the cat named?"), "Jana has a cat named Mimi", "once both hold")
}

// TestSearchAfterChanges: a search finds a text by the words it has now, although it was found by others before.
func TestSearchAfterChanges(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *FTS, x index) {
		say := func(event, text string) {
			expect.OK(t, f.IndexTurns(t.Context(), Turn{Scope: Shared, Event: event, Sender: "@a:x", Text: text, At: today}))
		}
		finds := func(text string, want ...string) {
			t.Helper()
			expect.EqualSlice(t, refs(t, x, Query{Text: text, Turns: true, Floor: search.DefaultFloor}), want, text)
		}
		remember(t, f, `{"text":"a heron at the weir","ref":"1"}`)
		say("$1", "the pelican is white")
		finds("heron", "1")
		finds("pelican", "$1")
		alter(t, f, `text = 'a crane at the weir'`, "1")
		say("$1", "the grebe is brown")
		finds("crane", "1")
		finds("grebe", "$1")
		expect.Must(f.Rebuild(t.Context()))(t)
		say("$2", "the egret is small") // its row follows those of the new index
		finds("crane", "1")
		finds("egret", "$2")
	})
}
