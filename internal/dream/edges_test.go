package dream

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/dream/report"
	"reverie/internal/memory"
	"reverie/internal/search/vector"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestVerdictsAreKept: what a model said of a pair is not asked again, also not of a
// program that began anew and looks at everything; another model is asked once, and the
// first is still known when it is back.
func TestVerdictsAreKept(t *testing.T) {
	w := newWorld(t, facts(), always("neither"))
	model := "one"
	again := func(want bool) {
		t.Helper()
		w.calls, w.now = 0, w.now.Add(24*time.Hour)
		w.exec(`UPDATE dream_run SET compared_until = 0, at = at - 700000000`) // everything is looked at, and the week's requests are there
		w.openDreamer(w.d.cfg.DB, w.store, always("neither"))
		w.d.cfg.Model = func() string { return model }
		for range 6 {
			w.dream(Options{})
			w.exec(`UPDATE dream_run SET compared_until = 0, at = at - 700000000`)
			w.now = w.now.Add(time.Hour)
		}
		expect.Equal(t, w.calls > 0, want, "%s: %d requests", model, w.calls)
	}
	again(true)
	again(false)
	for pair, n := range w.asked {
		if n > 1 {
			t.Errorf("%s was asked %d times", pair, n)
		}
	}
	model = "another"
	again(true)
	again(false)
	model = "one"
	again(false)
}

// TestTasksWithoutMemories: a night that does nothing to memories is told, and taken back like any.
func TestTasksWithoutMemories(t *testing.T) {
	c := newChores(t)
	c.d.cfg.Ask = nil
	c.add("Water the plants", nil)
	c.add("water the plants!", nil)
	rows := c.taskRows()
	r := c.dream(Options{})
	if r.State != report.Applied || len(r.Merged) != 0 || len(r.Tasks) != 1 || c.taskRows() == rows {
		t.Fatalf("%+v", r)
	}
	back, err := c.d.Undo(t.Context(), "")
	if err != nil || back.Run != r.Run || len(back.Chores) != 1 || c.taskRows() != rows {
		t.Errorf("%+v, %v\n%s", back, err, c.taskRows())
	}
	if _, err := c.d.Undo(t.Context(), ""); !errors.Is(err, ErrNothing) {
		t.Errorf("taken back twice: %v", err)
	}
}

// TestSameWordsAreFoundWhereTheyWere: who says the same as many others, in the same words
// twice, is known once: the search finds it as far down as before.
func TestSameWordsAreFoundWhereTheyWere(t *testing.T) {
	var all []fact
	for i, who := range []string{"Anna", "Ben", "Carla", "David", "Elif", "Farid", "Gwen", "Hamish", "Imogen", "Jasper", "Keziah", "Lorcan", "Maeve", "Niall", "Orla", "Una"} {
		for k, text := range []string{" is race officer on the last Saturday of the month.", " runs the committee boat on the last Saturday of the month.", " never learned to swim butterfly.", " pays £425 a year in dues."} {
			all = append(all, fact{key: fmt.Sprint(who, k), at: i + 3*k, texts: []string{who + text, strings.ToLower(who) + text}})
		}
	}
	w := newWorld(t, all, nil)
	if r := w.dream(Options{}); len(r.Merged) != 64 || strings.Contains(fmt.Sprint(r.Notes), "taken back") {
		t.Errorf("%d merged, %q", len(r.Merged), r.Notes)
	}
}

// TestWhatPeopleSaidStays: what a person wrote is never put away, whatever kind it has, and
// what was only heard takes its place on nobody's word but theirs; not even for what the
// plan alone would do.
func TestWhatPeopleSaidStays(t *testing.T) {
	for _, source := range []memory.Source{memory.UserExplicit, memory.FromFile} {
		for _, kind := range []memory.Kind{memory.Fact, memory.Happening, memory.Insight} {
			for _, verdict := range []string{"keep_second", "duplicate"} {
				w := newWorld(t, nil, always(verdict))
				w.now = time.Now().AddDate(2, 0, 0)
				said := w.know(memory.Entry{Text: "Anna lives in Berlin.", Kind: kind, Source: source, Integrity: trust.Owner, ObservedAt: w.now.AddDate(-2, 0, 0)})
				for i, text := range []string{"Anna has moved to Hamburg.", "Anna lives in Berlin, near the park.", "Anna resides in Berlin."} {
					w.know(memory.Entry{Text: text, Integrity: trust.Owner, ObservedAt: w.now.AddDate(-1, i, 0)})
				}
				r := w.dream(Options{})
				if got := w.byID(said.ID); got.State != memory.Active || got.By != "" {
					t.Errorf("%s %s, %s: %+v by %+v", source, kind, verdict, got, r)
				}
				about := slices.ContainsFunc(r.Questions, func(q report.Question) bool { return q.First == said.ID || q.Second == said.ID })
				if about != (verdict == "keep_second") {
					t.Errorf("%s %s, %s: questions %+v", source, kind, verdict, r.Questions)
				}
			}
		}
	}
}

// TestAnswers: who forgets one of two that were asked about keeps the other; who says it
// again in own words is believed, and asked no more.
func TestAnswers(t *testing.T) {
	same := home("")
	same[1].at = same[0].at
	ask := func() (*world, report.Question) {
		t.Helper()
		w := newWorld(t, same, perfect)
		w.d.cfg.Ask = func(_ context.Context, _, prompt string) (string, error) {
			return answerAll(prompt, func(a, b string) string {
				switch {
				case !strings.Contains(a, "Anna") || !strings.Contains(b, "Anna"):
					return "neither"
				case strings.Contains(a, "Berlin") != strings.Contains(b, "Berlin"):
					return "update"
				}
				return "duplicate"
			}), nil
		}
		r := w.dream(Options{})
		if len(r.Questions) != 1 {
			t.Fatalf("%+v", r)
		}
		return w, r.Questions[0]
	}
	w, q := ask()
	gone, stays := q.First, q.Second
	if w.byID(gone).Text != "Anna lives in Berlin." {
		gone, stays = stays, gone
	}
	expect.Must(w.store.Forget(t.Context(), everything, gone))(t)
	w.now = w.now.Add(24 * time.Hour)
	if r := w.dream(Options{}); len(r.Questions) != 0 || w.byID(stays).State != memory.Active {
		t.Errorf("%+v", r)
	}
	w, _ = ask()
	w.know(memory.Entry{Text: "Anna lives in Hamburg now.", Source: memory.UserExplicit, Integrity: trust.Owner, ObservedAt: w.now})
	w.now = w.now.Add(24 * time.Hour)
	w.exec(`UPDATE memory SET created_at = ?1, updated_at = ?1 WHERE source = 'user_explicit'`, w.now.Add(-time.Hour).UnixMilli())
	r := w.dream(Options{})
	if len(r.Questions) != 0 || len(r.Superseded) != 1 || r.Superseded[0].Text != "Anna lives in Berlin." {
		t.Errorf("%+v", r)
	}
}

// TestSlowModel: a model that never answers costs the night's minutes and no more, and the
// rest of the night is done.
func TestSlowModel(t *testing.T) {
	w := newWorld(t, facts(), nil)
	w.d.cfg.Budget.Time = 20 * time.Millisecond
	w.d.cfg.Ask = func(ctx context.Context, _, _ string) (string, error) {
		if until, ok := ctx.Deadline(); !ok || time.Until(until) > w.d.cfg.Budget.Time {
			t.Errorf("it is waited for until %v", until)
		}
		w.calls++
		<-ctx.Done()
		return "", ctx.Err()
	}
	if r := w.dream(Options{}); len(r.Merged) == 0 || len(r.Superseded) > 0 || w.calls != 1 || len(r.Notes) == 0 {
		t.Errorf("%d requests, %+v", w.calls, r)
	}
}

// meaning is an embedder that knows what some texts mean: what stands in one line of
// same means the same.
type meaning struct{ same []string }

func (meaning) Name() string { return "meaning" }

func (m meaning) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		key := text
		for _, line := range m.same {
			if strings.Contains(line, text) {
				key = line
			}
		}
		h := fnv.New64a()
		h.Write([]byte(key))
		random := rand.New(rand.NewPCG(h.Sum64(), 0))
		out[i] = make([]float32, 64)
		for k := range out[i] {
			out[i][k] = random.Float32() - .5
		}
	}
	return out, nil
}

// TestNearInMeaning: what is near in meaning and has no word in common is asked about, once,
// and put together if the model says so; what differs in a name, a number or a "not" is not
// even asked about. Both texts stay.
func TestNearInMeaning(t *testing.T) {
	dir := t.TempDir()
	db, plain := openStore(t, dir)
	texts := []string{"dusk strolls calm her down", "evening walks relax her",
		"her alarm rings at 6", "she is woken at 7", "beer is never drunk", "lager is often had",
		"Anna bakes rye bread", "dark loaves are made by Ben"}
	for i := range 60 {
		texts = append(texts, fmt.Sprintf("something of the sort %c%c", 'a'+i%26, 'a'+i/26))
	}
	for i, text := range texts {
		if _, _, err := plain.Add(t.Context(), memory.Entry{Scope: memory.Private(owner), Text: text, Source: memory.Harvest, ObservedAt: day0.AddDate(0, 0, i)}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	v := expect.Must(vector.Open(t.Context(), vector.Config{DB: db, Embedder: meaning{[]string{
		texts[0] + "|" + texts[1], texts[2] + "|" + texts[3], texts[4] + "|" + texts[5], texts[6] + "|" + texts[7]}}}))(t)
	expect.OK(t, v.Complete(t.Context()))
	s := expect.Must(memory.Open(t.Context(), memory.Config{DB: db, Dir: dir, Owner: owner, Backend: "local_vector", Vectors: v}))(t)
	w := worldOf(t, dir, db, s, nil, always("duplicate"))
	r := w.dream(Options{Phases: []Phase{Dedup}})
	pair := texts[0] + "|" + texts[1]
	if len(r.Grouped) != 1 || w.asked[pair] != 1 || len(w.active()) != len(texts) {
		t.Errorf("%+v, %v", r.Grouped, w.asked)
	}
	for p := range w.asked {
		for _, other := range texts[2:8] {
			if strings.Contains(p, other) {
				t.Errorf("asked about %s", p)
			}
		}
	}
	if w.dream(Options{Phases: []Phase{Dedup}}); w.asked[pair] != 1 {
		t.Error("asked again")
	}
	// Without vectors nobody is asked.
	if found, err := plain.Neighbours(t.Context(), w.active()[texts[0]].ID, 3); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestNegations: what says that something is not so is known in the languages that a
// conversation can begin in, and what denies in two words counts once; months and the
// like deny nothing.
func TestNegations(t *testing.T) {
	for _, c := range []struct {
		is, not string
	}{
		{"Anna eats meat", "Anna doesn't eat meat any more"}, {"Anna eats meat", "Anna never eats meat"}, {"Anna was born in May", "Nobody was born in May"},
		{"Anna isst Fleisch", "Anna isst kein Fleisch mehr"}, {"Anna hat am 3. Mai Geburtstag", "Anna hat nicht am 3. Mai Geburtstag"}, {"Er trinkt Bier", "Er trinkt niemals Bier"},
		{"Anna mange de la viande", "Anna ne mange pas de viande"}, {"Anna mange de la viande", "Anna ne mange plus de viande"}, {"Anna aime le vin", "Anna n'aime plus le vin"}, {"Anna aime le vin", "Anna n'aime pas du tout le vin"},
		{"Anna boit du vin", "Anna ne boit jamais de vin"}, {"Anna a vu un loup", "Anna n'a jamais vu de loup"}, {"Anna a vu un loup", "Anna n'a vu aucun loup"},
		{"Anna come carne", "Anna no come carne"}, {"Anna come carne", "Anna ya no come carne"}, {"Anna bebe vino", "Anna no bebe nunca vino"}, {"Anna bebe vino", "Anna nunca bebe vino"}, {"Anna come algo", "Anna no come nada"},
		{"Anna mangia carne", "Anna non mangia carne"}, {"Anna mangia carne", "Anna non mangia più carne"}, {"Anna beve vino", "Anna non beve mai vino"}, {"Anna mangia carne", "Anna non mangia mai niente"},
		{"Anna come carne", "Anna não come carne"}, {"Anna come carne", "Anna já não come carne"}, {"Anna bebe vinho", "Anna não bebe nunca vinho"}, {"Anna fuma", "Anna deixou de fumar"},
		{"安娜吃肉", "安娜不吃肉"}, {"安娜有狗", "安娜没有狗"}, {"安娜喝酒", "安娜不再喝酒"},
		{"アンナは肉を食べる", "アンナは肉を食べない"}, {"アンナは酒を飲みます", "アンナは酒を飲みません"},
		{"アンナはヨガをする", "アンナはヨガをやめました"}, {"アンナは卵を食べる", "アンナは卵を食べなくなった"}, {"安娜练瑜伽", "安娜停止练瑜伽了"},
	} {
		got := signed(c.is, c.not)
		if got[0].negative || !got[1].negative {
			t.Errorf("%s: %v, %s: %v", c.is, got[0].negative, c.not, got[1].negative)
		}
	}
}

// TestChanges: what says that something is not as it was.
func TestChanges(t *testing.T) {
	for _, text := range []string{
		"Anna has moved from Berlin to Hamburg", "Anna ist von Berlin nach Hamburg gezogen", "Anna a déménagé de Lyon à Lille", "Anna habite désormais à Lille", "Anna n'habite plus à Lyon",
		"Anna se ha mudado de Sevilla a Bilbao", "Anna vive ahora en Bilbao", "Anna ya no vive en Sevilla", "Anna si è trasferita da Pisa a Bari", "Anna adesso vive a Bari", "Anna non vive più a Pisa",
		"安娜从北京搬到上海了", "安娜现在住在上海", "アンナは東京から大阪に引っ越した", "アンナは今は大阪に住んでいる",
		"安娜从华为跳槽到小米", "会议推迟到五点", "安娜三月起在小米上班", "安娜的生日其实是五月三日", "安娜已经搬到上海", "アンナの家賃は8万円になりました", "会議は5時に延期です", "アンナは車を買い替えました", "訂正します、アンナの席は5階です",
	} {
		if s := signed(text)[0]; !s.changed {
			t.Errorf("%s", text)
		}
	}
	for _, text := range []string{"Anna lives in Berlin", "Anna wohnt in Berlin", "Anna habite à Lyon", "Anna vive en Sevilla", "Anna vive a Pisa", "安娜住在北京", "アンナは東京に住んでいる", "会议是五点", "安娜在小米上班", "アンナの家賃は8万円です", "アンナの席は5階です", "アンナは小さい家に住んでいます"} {
		if s := signed(text)[0]; s.changed {
			t.Errorf("%s", text)
		}
	}
}

// TestNotAskedInOtherWords: what says one of the two again, and settles nothing, is no new question.
func TestNotAskedInOtherWords(t *testing.T) {
	w := newWorld(t, nil, func(_ *world, prompt string) (string, error) {
		return answerAll(prompt, func(a, b string) string {
			switch strings.Count(a+b, "Hamburg") + 3*strings.Count(a+b, "Berlin") {
			case 2:
				return "duplicate"
			case 4:
				return "unsure"
			}
			return "neither"
		}), nil
	})
	for i, text := range []string{"Anna lives in Berlin.", "Anna lives in Hamburg.", "Anna plays the cello.", "Anna works as a nurse.", "Anna has two cats."} {
		w.know(memory.Entry{Text: text, Integrity: trust.User, ObservedAt: day0.AddDate(0, 0, i)})
	}
	if r := w.dream(Options{Phases: Phases}); len(r.Questions) != 1 || r.Questions[0].Number != 1 { // so that the next one looks at everything again
		t.Fatalf("%+v", r)
	}
	w.know(memory.Entry{Text: "Anna resides in Hamburg.", Integrity: trust.User, ObservedAt: w.now})
	if r := w.dream(Options{}); len(r.Questions) != 0 || len(r.Superseded) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestScopesShareQuestionsFairly: one scope with many doubts takes none of another's.
func TestScopesShareQuestionsFairly(t *testing.T) {
	var all []report.Question
	for range maxQuestions {
		all = append(all, report.Question{Scope: memory.Shared})
	}
	if !tooMany(all, memory.Shared) || tooMany(all, memory.Private(owner)) {
		t.Error("shared: ", tooMany(all, memory.Shared), ", private: ", tooMany(all, memory.Private(owner)))
	}
}

// TestOneLineAfterTheNight: two lines of MEMORIES.txt that mean the same are one afterwards,
// in the file and in what a prompt shows, whatever the backend; the report names both, and
// taking the night back gives both again.
func TestOneLineAfterTheNight(t *testing.T) {
	const less, more = "Anna is fond of green tea.", "Anna is really fond of tea that is green."
	for _, b := range []string{"flat_file", "fts5", "local_vector"} {
		t.Run(b, func(t *testing.T) {
			dir := t.TempDir()
			db, _ := openStore(t, dir)
			s := expect.Must(memory.Open(t.Context(), memory.Config{DB: db, Dir: dir, Owner: owner, Backend: b}))(t)
			path := filepath.Join(dir, "MEMORIES.txt")
			expect.OK(t, os.WriteFile(path, []byte("# mine\n"+less+"\nBen plays chess.\n"+more+"\n"), 0o600))
			w := worldOf(t, dir, db, s, nil, func(_ *world, prompt string) (string, error) {
				return answerAll(prompt, func(x, y string) string {
					if strings.Contains(x, "Anna") && strings.Contains(y, "Anna") {
						return "duplicate"
					}
					return "neither"
				}), nil
			})
			look := func(want string) {
				t.Helper()
				all := expect.Must(s.WorkingSet(t.Context(), memory.Private(owner)))(t)
				shown := ""
				for _, e := range all {
					shown += e.Text + "\n"
				}
				file := expect.Must(os.ReadFile(path))(t)
				if shown != want || string(file) != "# mine\n"+want {
					t.Errorf("the prompt shows\n%sthe file has\n%swant\n%s", shown, file, want)
				}
			}
			look(less + "\nBen plays chess.\n" + more + "\n")
			r := w.dream(Options{})
			if len(r.Grouped) != 1 || r.Grouped[0].Text != less || r.Grouped[0].ByText != more {
				t.Fatalf("%+v", r)
			}
			for _, text := range []string{less, more} {
				if !strings.Contains(r.Text(time.UTC), text) {
					t.Errorf("the report does not name %q:\n%s", text, r.Text(time.UTC))
				}
			}
			look("Ben plays chess.\n" + more + "\n")
			if e := w.byID(r.Grouped[0].By); e.Source != memory.DreamingMerge {
				t.Errorf("%+v", e)
			}
			if again := w.dream(Options{}); again.State == report.Applied {
				t.Errorf("the next night does it again: %+v", again)
			}
			expect.Must(w.d.Undo(t.Context(), ""))(t)
			look("Ben plays chess.\n" + more + "\n" + less + "\n")
			if again := w.dream(Options{}); len(again.Grouped) > 0 {
				t.Errorf("what was parted is put together again: %+v", again)
			}
		})
	}
}

// TestWhoIsShown: the fuller text is shown; what a person wrote is not hidden behind what was
// only heard, nor what is sure behind a guess, nor a name or number behind a text without it, nor
// one of two short answers behind the other.
func TestWhoIsShown(t *testing.T) {
	entry := func(text string, by memory.Source) memory.Entry {
		return memory.Entry{ID: text + string(by), Scope: memory.Private(owner), Text: text, Source: by, State: memory.Active}
	}
	full, short := entry("she enjoys green tea in the evening", memory.Harvest), entry("she likes green tea", memory.Harvest)
	names := newNamer()
	for i, c := range []struct {
		head, member memory.Entry
		want         bool
	}{
		{full, short, true}, {short, full, false},
		{full, entry("she likes green tea", memory.UserExplicit), false}, {entry("she enjoys green tea in the evening", memory.FromFile), short, true},
		{entry("perhaps she enjoys green tea in the evening", memory.Harvest), short, false},
		{full, entry("she likes 3 green teas", memory.Harvest), false},
		{entry("Quentin likes goulash.", memory.Harvest), entry("Quentin likes sushi.", memory.Harvest), false},
		{entry("Quentin adores sushi.", memory.Harvest), entry("Quentin likes sushi.", memory.Harvest), true}, {entry("the", memory.Harvest), entry("a", memory.Harvest), true},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			a, b := names.signatureOf(c.head), names.signatureOf(c.member)
			expect.Equal(t, mayRepresent(&a, &b), c.want, "%q for %q", c.head.Text, c.member.Text)
		})
	}
}
