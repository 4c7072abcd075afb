package memory

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func notedBy(t testing.TB, s *Store, source Source, scope Scope, text string) Entry {
	t.Helper()
	e, _, err := s.Add(t.Context(), Entry{Scope: scope, Text: text, Source: source}, guest)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"Ada's sister Jana lives in Brno since 3 May 2019.":           "2019|3|ada|brno|jana|may",
		"The PIN is 4711, code A-12/b, call +49 30 1234-56 at 17:30.": "+49|1234-56|17:30|30|4711|a-12/b|pin",
		"write to jana@example.org or see https://a.example/x?y=1.":   "https://a.example/x?y=1|jana@example.org",
		"@me:example.org uses an iPhone and C++":                      "@me:example.org|c++|iphone",
		"Er sagt „nie wieder“, und es sind −5 °C.":                    "-5|nie wieder",
		"彼は「山田」と言った 12 回":                                             "12|山田",
		"likes tea":                                                   "",
		"I'm here, and I may go. We go too. The end.":                 "",
		"10–12 Uhr, dann 10-12 Uhr":                                   "10-12|uhr",
		"Jana und Jana's Hund":                                        "hund|jana",
		"2026-11-21 is not 2026-11-22, and v1.2 is not 1.2":           "1.2|2026-11-21|2026-11-22|v1.2",
	} {
		if got := strings.Join(tokens(text), "|"); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestUnkept: what is looked for is a word or a number by itself.
func TestUnkept(t *testing.T) {
	for _, tt := range []struct{ old, text, want string }{
		{"10 geese", "10 of them", ""}, {"10 geese", "100 of them", "10"}, {"10 geese", "at 10:30", "10"}, {"10 geese", "all 10.", ""},
		{"-5 degrees", "5 degrees", "-5"}, {"5 degrees", "-5 degrees", "5"}, {"at Jana", "JANA's", ""}, {"geht mit Janas", "von Jana", ""},
		{"with Ann", "with Anna", "ann"}, {"say “so be it”", "say 'so be it'", ""}, {"「山田」さん", "山田さんです", ""},
		{"see https://a.example/x", "see https://a.example/xy", "https://a.example/x"},
	} {
		if got := strings.Join(unkept(tt.old, tt.text), "|"); got != tt.want {
			t.Errorf("%q in %q: %q is lost, want %q", tt.old, tt.text, got, tt.want)
		}
	}
}

// TestMerge: the new entry stands where the first old one stood, is found, and
// knows what it was made of; the old ones are nowhere but in its history. One undo
// gives back every byte.
func TestMerge(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	mine := Private(guest)
	put(t, s, mine, "# mine\r\n\r\nthe first\r\n")
	texts(t, s, mine)
	var ids []string
	for _, text := range []string{"Jana lives in Brno", "tea is good", "Jana lives in Brno and has 2 cats", "Jana has 2 cats called Pip and Mo"} {
		if e := notedBy(t, s, Assistant, mine, text); strings.Contains(text, "Jana") {
			ids = append(ids, e.ID)
		}
	}
	file, entries := onDisk(t, s, mine), asJSONs(t, s)
	m := must[Entry](t)(s.Merge(ctx, as(guest), []string{ids[2], ids[0], ids[1], ids[0]}, "  Jana lives in Brno with 2 cats,  Pip and Mo", guest))
	if m.Text != "Jana lives in Brno with 2 cats, Pip and Mo" || m.Source != DreamingMerge || m.Scope != mine || m.State != Active {
		t.Errorf("merged: %+v", m)
	}
	for _, id := range ids {
		if e := must[Entry](t)(s.Get(ctx, everything, id)); e.State != Merged || e.By != m.ID {
			t.Errorf("%+v", e)
		}
	}
	if got, want := onDisk(t, s, mine), "# mine\r\n\r\nthe first\r\nJana lives in Brno with 2 cats, Pip and Mo\r\ntea is good\r\n"; got != want {
		t.Errorf("the file is\n%q, want\n%q", got, want)
	}
	if got := texts(t, s, mine); got != "the first|Jana lives in Brno with 2 cats, Pip and Mo|tea is good" {
		t.Errorf("known: %s", got)
	}
	if hits := must[[]Hit](t)(s.Search(ctx, Query{Text: "Jana", Scopes: []Scope{mine}, K: 9, Past: true})); len(hits) != 1 || hits[0].Entry.ID != m.ID {
		t.Errorf("found: %+v", hits)
	}
	if got := kinds(must[[]Op](t)(s.History(ctx, as(guest), m.ID))); got != "add add add add merge merge merge" {
		t.Errorf("history: %s", got)
	}
	sound(t, s)
	undone := must[Undone](t)(s.Undo(ctx, as(guest), ""))
	if len(undone.Back) != 3 || len(undone.Away) != 1 {
		t.Errorf("undone: %+v", undone)
	}
	if diff := cmp.Diff(file, onDisk(t, s, mine)); diff != "" {
		t.Errorf("the file after the undo: %s", diff)
	}
	after := asJSONs(t, s)
	delete(after, m.ID)
	if diff := cmp.Diff(entries, after); diff != "" {
		t.Errorf("the entries after the undo: %s", diff)
	}
	sound(t, s)
	must[Undone](t)(s.Undo(ctx, as(guest), undone.Batch))
	if got := texts(t, s, mine); got != "the first|Jana lives in Brno with 2 cats, Pip and Mo|tea is good" {
		t.Errorf("merged again: %s", got)
	}
}

// asJSONs is all entries by id, without what changes with every operation.
func asJSONs(t testing.TB, s *Store) map[string]string {
	t.Helper()
	all := must[[]Entry](t)(entries(t.Context(), s.db, `ORDER BY n`))
	out := map[string]string{}
	for _, e := range all {
		out[e.ID] = asJSON(e)
	}
	return out
}

// TestMergeRefuses what would lose something, and then changes nothing.
func TestMergeRefuses(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	mine := Private(guest)
	add := func(source Source, scope Scope, text string) string { return notedBy(t, s, source, scope, text).ID }
	brno, cats, nuts := add(Assistant, mine, "Jana moved to Brno on 2019-05-03"), add(Assistant, mine, "Jana has two cats and a dog"), add(Assistant, mine, "Jana does not eat nuts")
	own, room := add(UserExplicit, mine, "the spare key hangs behind the blue door"), add(Assistant, Room("!dm"), "the room is cold")
	pinned, other := add(Assistant, mine, "the pinned thing"), add(Assistant, Private(owner), "the owner's secret heron")
	shared, theirs := add(Assistant, Shared, "the office opens early in the morning"), must[Entry](t)(s.Share(ctx, as(owner), noted(t, s, Private(owner), "the owner's office is upstairs", owner).ID)).ID
	says := add(Assistant, mine, "Jana is in Brno")
	if err := s.Pin(ctx, as(guest), pinned, true); err != nil {
		t.Fatal(err)
	}
	forgotten := add(Assistant, mine, "Jana cats dog Brno 2019-05-03")
	must[Erased](t)(s.Forget(ctx, as(guest), forgotten))
	long := "Jana with two cats and a dog moved to Brno on 2019-05-03"
	before := asJSONs(t, s)
	for name, tt := range map[string]struct {
		ids, text, want string
	}{
		"nothing":              {"", long, "cannot become one"},
		"too many":             {strings.Repeat(brno+"x ", 1) + manyIDs(51), long, "cannot become one"},
		"no text":              {brno, " ", "empty"},
		"no such":              {brno + " mem_nothing", long, "mem_nothing: there is no such memory here"},
		"somebody else's":      {brno + " " + other, long, other + ": there is no such memory here"},
		"only somebody else's": {other, "the owner's heron", other + ": there is no such memory here"},
		"two scopes":           {nuts + " " + shared, "Jana does not eat nuts in the office", "stay apart"},
		"forgotten entry":      {forgotten, "Jana Brno 2019-05-03", "there is no such memory"},
		"pinned":               {pinned + " " + cats, "Jana has two cats and a dog", "is pinned"},
		"shared by another":    {theirs, "office upstairs", "somebody else"},
		"a date is lost":       {brno + " " + cats, "Jana has two cats and a dog and moved to Brno", `"2019-05-03"`},
		"a date is changed":    {brno + " " + cats, "Jana has two cats and a dog, and to Brno moved 2019-05-04", `"2019-05-04", and none`},
		"a name is lost":       {brno + " " + cats, "She has two cats and a dog, moved to Brno 2019-05-03", `"jana"`},
		"a number is made up":  {brno + " " + cats, "Jana has 2 cats and a dog and moved to Brno on 2019-05-03", `"2", and none`},
		"not is lost":          {nuts, "Jana does eat nuts", "not so"},
		"hardly anything":      {brno + " " + cats, "Jana came to Brno on 2019-05-03", "hardly anything"},
		"own words":            {own + " " + cats, "Jana has two cats and a dog; the spare key hangs behind the door", `"blue"`},
		"no shorter":           {brno, "Jana moved to Brno on 2019-05-03", "fewer"},
		"another says it":      {brno + " " + cats, "Jana is in Brno", says + " says exactly that"},
		"was to be forgotten":  {brno + " " + cats, "Jana cats dog Brno 2019-05-03", "to be forgotten"},
		"elsewhere":            {room, "room cold", "there is no such memory here"},
	} {
		a := as(guest)
		a.Scopes = []Scope{mine, Shared}
		_, err := s.Merge(ctx, a, strings.Fields(tt.ids), tt.text, guest)
		var reason *TextError
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, &reason) && !errors.Is(err, ErrForgotten) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "heron") && !strings.Contains(tt.text, "heron") {
			t.Errorf("%s tells a secret: %v", name, err)
		}
	}
	if diff := cmp.Diff(before, asJSONs(t, s)); diff != "" {
		t.Error(diff)
	}
	got := ""
	for _, e := range must[[]Entry](t)(s.Mergeable(ctx, as(guest))) {
		got += e.ID + " "
	}
	if want := strings.Join([]string{brno, cats, nuts, own, says, shared}, " ") + " "; got != want {
		t.Errorf("mergeable: %s, want %s", got, want)
	}
	must[Entry](t)(s.Merge(ctx, as(guest), []string{brno, cats}, long, guest))
}

// TestMergedByItself: what the program put together by itself is not the last change
// of the person, and stays theirs.
func TestMergedByItself(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	e := notedBy(t, s, Assistant, Shared, "the office opens early in the morning")
	m := must[Entry](t)(s.Merge(ctx, as(guest), []string{e.ID}, "the office opens early", "tidying"))
	if from, err := cameFrom(ctx, s.db, m.ID); err != nil || from != guest {
		t.Errorf("it came from %q, %v", from, err)
	}
	m = must[Entry](t)(s.Merge(ctx, as(guest), []string{m.ID}, "office opens early", "tidying"))
	noted(t, s, Private(guest), "tea", guest)
	must[Undone](t)(s.Undo(ctx, as(guest), ""))
	if got := texts(t, s, Private(guest), Shared); got != "office opens early" {
		t.Errorf("the last change of the person was another one: %q", got)
	}
	must[Undone](t)(s.Undo(ctx, as(guest), must[[]Op](t)(s.History(ctx, as(guest), m.ID))[3].Batch))
	if got := texts(t, s, Shared); got != "the office opens early" {
		t.Errorf("taken back by its name: %q", got)
	}
	must[Entry](t)(s.Withdraw(ctx, as(guest), must[[]Entry](t)(s.Mergeable(ctx, as(guest)))[0].ID))
}

// allWords is what each of texts says, in as few words as that can be.
func allWords(texts ...string) string {
	var all []string
	for _, text := range texts {
		for w := range strings.FieldsSeq(text) {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return strings.Join(all, " ")
}

func manyIDs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "mem_%d ", i)
	}
	return b.String()
}

// TestOwnWordsOutliveMerges: what a person said is not worn away step by step.
func TestOwnWordsOutliveMerges(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	mine := Private(guest)
	own := notedBy(t, s, UserExplicit, mine, "the spare key hangs behind the blue door")
	also := notedBy(t, s, Assistant, mine, "the spare key is made of brass")
	m := must[Entry](t)(s.Merge(ctx, as(guest), []string{own.ID, also.ID}, "the spare key, of brass, hangs behind the blue door", guest))
	more := notedBy(t, s, Assistant, mine, "the spare key sticks")
	m = must[Entry](t)(s.Merge(ctx, as(guest), []string{m.ID, more.ID}, "the spare key hangs behind the blue door and sticks, brass", guest))
	if _, err := s.Merge(ctx, as(guest), []string{m.ID}, "the brass spare key hangs behind a door and sticks", guest); err == nil || !strings.Contains(err.Error(), `"blue"`) {
		t.Errorf("blue is gone: %v", err)
	}
	put(t, s, mine, "the shed is green and tall\n"+onDisk(t, s, mine))
	texts(t, s, mine)
	byHand := must[[]Entry](t)(s.List(ctx, as(guest), Filter{Words: "shed"}))[0]
	if _, err := s.Merge(ctx, as(guest), []string{byHand.ID}, "the shed is tall", guest); err == nil || !strings.Contains(err.Error(), `"green"`) {
		t.Errorf("green is gone: %v", err)
	}
}

// TestForgetPart: what one part of a merged entry said is gone, and the other
// parts are known again; to forget the merged entry forgets its parts.
func TestForgetPart(t *testing.T) {
	mine := Private(guest)
	setup := func(t *testing.T) (s *Store, dir string, parts []string, m Entry) {
		dir = t.TempDir()
		s = openAt(t, dir)
		for i, text := range []string{"the heron nests by the weir", "the otter sleeps by the weir"} {
			e, _, err := s.Add(t.Context(), Entry{Scope: mine, Text: text, Source: Assistant, Event: fmt.Sprint("$", i)}, guest)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, e.ID)
		}
		m = must[Entry](t)(s.Merge(t.Context(), as(guest), parts, "heron and otter sleep by the weir, nests", guest))
		return s, dir, parts, m
	}
	t.Run("a message is taken back", func(t *testing.T) {
		s, dir, _, _ := setup(t)
		if done := must[Erased](t)(s.ForgetEvent(t.Context(), as(guest), "$0")); done.Entries != 2 {
			t.Errorf("%+v", done)
		}
		if got := texts(t, s, mine); got != "the otter sleeps by the weir" {
			t.Errorf("known: %q", got)
		}
		if found := traces(t, dir, "heron"); len(found) > 0 {
			t.Errorf("left in %v", found)
		}
		sound(t, s)
	})
	t.Run("the whole", func(t *testing.T) {
		s, dir, _, m := setup(t)
		if done := must[Erased](t)(s.Forget(t.Context(), as(guest), m.ID)); done.Entries != 3 {
			t.Errorf("%+v", done)
		}
		if got := texts(t, s, mine); got != "" {
			t.Errorf("known: %q", got)
		}
		if found := append(traces(t, dir, "heron"), traces(t, dir, "otter")...); len(found) > 0 {
			t.Errorf("left in %v", found)
		}
	})
}

// TestMergeProperties: whatever is put together with whatever text, what comes of
// it is shorter, holds every protected token of all that it ever was made of, and
// stays in its scope; a refusal changes nothing; undone step by step, every entry
// and every byte of the file is as it was.
func TestMergeProperties(t *testing.T) {
	t.Parallel()
	dir, runs := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		s := openAt(t, filepath.Join(dir, strconv.Itoa(runs)))
		defer func() { _ = s.db.Close() }()
		ctx, a := t.Context(), as(guest)
		words := []string{"Jana", "4711", "2026-11-21", "https://a.example/x", "tea", "the", "herons", "not", `"so be it"`, "Größe", "茶", "x@y.example"}
		sentence := func() string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 6).Draw(rt, "words"), " ")
		}
		for range rapid.IntRange(2, 8).Draw(rt, "entries") {
			scope := rapid.SampledFrom([]Scope{Private(guest), Private(guest), Shared, Private(owner)}).Draw(rt, "scope")
			source := rapid.SampledFrom([]Source{Assistant, Assistant, UserExplicit}).Draw(rt, "source")
			notedBy(t, s, source, scope, sentence())
		}
		type state struct {
			file    string
			entries map[string]string
		}
		now := func() state {
			texts(t, s, Private(guest), Shared, Private(owner))
			file, _ := readAll(filepath.Join(s.dir, filepath.FromSlash(s.File(Private(guest)))))
			return state{string(file), asJSONs(t, s)}
		}
		var past []state
		for range rapid.IntRange(1, 4).Draw(rt, "merges") {
			was := now()
			all := must[[]Entry](t)(s.List(ctx, everything, Filter{}))
			some := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, min(3, len(all)), func(e Entry) string { return e.ID }).Draw(rt, "which")
			var ids, said []string
			for _, e := range some {
				ids, said = append(ids, e.ID), append(said, e.Text)
			}
			text := sentence()
			if rapid.Bool().Draw(rt, "dutiful") {
				parts := strings.Fields(strings.Join(said, " "))
				slices.Sort(parts)
				text = strings.Join(slices.Compact(parts), " ")
				if strings.Contains(text, `"`) {
					text = strings.NewReplacer(`"so`, "", "be ", "", `it"`, "").Replace(text) + ` "so be it"`
				}
			}
			m, err := s.Merge(ctx, a, ids, text, guest)
			if err != nil {
				if got := now(); cmp.Diff(was.entries, got.entries) != "" || was.file != got.file {
					rt.Fatalf("refused (%v), and yet changed", err)
				}
				continue
			}
			past = append(past, was)
			size := 0
			for _, e := range some {
				size += len([]rune(e.Text))
				if e.Scope != m.Scope || e.Scope == Private(owner) {
					rt.Fatalf("%s of %s is in %s", e.Text, e.Scope, m.Scope)
				}
			}
			if len([]rune(m.Text)) >= size {
				rt.Fatalf("%q is no shorter than %q", m.Text, said)
			}
			parts, err := chain(ctx, s.db, m.ID)
			if err != nil {
				rt.Fatal(err)
			}
			for _, id := range parts {
				for _, token := range tokens(must[Entry](t)(s.Get(ctx, everything, id)).Text) {
					if !strings.Contains(levelled(m.Text), token) {
						rt.Fatalf("%q has no %q", m.Text, token)
					}
				}
			}
		}
		for i := len(past) - 1; i >= 0; i-- {
			must[Undone](t)(s.Undo(ctx, a, ""))
			got := now()
			if got.file != past[i].file {
				rt.Fatalf("the file is\n%s\nand was\n%s", got.file, past[i].file)
			}
			for id, e := range past[i].entries {
				if got.entries[id] != e {
					rt.Fatalf("the entry is\n%s\nand was\n%s", got.entries[id], e)
				}
			}
		}
		if faults, err := s.index.Verify(ctx); err != nil || len(faults) > 0 {
			rt.Fatalf("the index: %q, %v", faults, err)
		}
	})
}
