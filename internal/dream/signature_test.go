package dream

import (
	"bytes"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	reverie "reverie"
	"reverie/internal/harvest"
	"reverie/internal/llm/template"
	"reverie/internal/memory"
	"reverie/internal/test/expect"
)

func signed(texts ...string) []*signature {
	n := newNamer()
	out := make([]*signature, len(texts))
	for i, text := range texts {
		s := n.signatureOf(memory.Entry{ID: text, Scope: memory.Private(owner), Text: text})
		out[i] = &s
	}
	return out
}

// TestCovers: what is merged without a model is said by what takes its place.
// Holds L6, W14.
func TestCovers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Anna lives in Berlin.", "anna lives in  Berlin", true},
		{"Anna lives in Berlin", "Anna lives in Berlin, near the park", true},
		{"Remember that Anna lives in Berlin.", "Anna lives in Berlin", true},
		{"Ben isn't a vegetarian", "Ben is not vegetarian", true},
		{"Anna wohnt in Berlin", "Anna wohnt in Berlin (seit 2019)", true},
		{"The office is in Rome", "Office is in Rome", false}, // The Office may be a series
		{"Ben has a dog", "Ben has a dog allergy", false},
		{"Ben has a dog", "Ben has a dog and a cat allergy", false},
		{"Anna likes tea", "Anna likes tea, but only in the evening", false},
		{"Anna works at Siemens", "Anna works at Siemens, until March", false},
		{"Anna likes tea", "Anna likes tea, not coffee", false},
		{"The code is 4711", "The code is 4712", false},
		{"The code is 4711", "The code is 47 11", false},
		{"It is -5 degrees", "It is 5 degrees", false},
		{"It costs $5", "It costs €5", false},
		{"The password is Tiger7", "The password is tiger7", false},
		{"Ben likes C#", "Ben likes C", false},
		{"Take it before meals", "Take it after meals", false},
		{"Anna lent Ben 50 euros", "Ben lent Anna 50 euros", false},
		{"Anna lived in Berlin", "Anna lives in Berlin", false},
		{"Anna is a vegetarian", "Anna is no vegetarian", false},
		{"Anna ist Vegetarierin", "Anna ist keine Vegetarierin", false},
		{"10 mg of it", "10 g of it", false},
		{"Anna likes tea", "Ben likes tea", false},
		{"Die Tür ist offen", "Die Tür ist offen, aber nur bis acht", false},
	} {
		s := signed(c.a, c.b)
		expect.Equal(t, covers(s[1], s[0]), c.want, "%q is said by %q", c.a, c.b)
	}
}

// TestWhoToWhom: articles, and prepositions that look like some, say who does what to whom;
// to leave out one that says nothing makes no difference.
func TestWhoToWhom(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Der Wirt vertritt den Hausmeister.", "Den Wirt vertritt der Hausmeister.", false},
		{"Den Jens mag Gisela.", "Jens mag Gisela.", false},
		{"Die Mutter hilft der Tochter", "Der Mutter hilft die Tochter", false},
		{"Jens schreibt an Karla", "An Jens schreibt Karla", false},
		{"A Luca piace Elena.", "Luca piace a Elena.", false},
		{"A Pedro llama Ana", "Pedro llama a Ana", false},
		{"A Pedro llama Ana", "Pedro llama Ana", false},
		{"Take vitamin A", "Take vitamin", false},
		{"The key opens door A.", "The key opens door.", false},
		{"Rosie had her hepatitis A jab", "Rosie had her hepatitis jab", false},
		{"Mila isst das Brot", "Mila isst Brot", true},
		{"Die Vermieterin wohnt im Birkenweg 7", "Vermieterin wohnt im Birkenweg 7", true},
		{"Hazel has a blue car", "Hazel has blue car", true},
		{"Please remember that the heating is off", "The heating is off", true},
	} {
		s := signed(c.a, c.b)
		if covers(s[0], s[1]) != c.want || covers(s[1], s[0]) != c.want {
			t.Errorf("%q and %q say the same: %v", c.a, c.b, !c.want)
		}
	}
}

// TestDoubtAndLimits: what says that something is doubtful, or not always so, is known in
// the languages that a conversation can begin in.
func TestDoubtAndLimits(t *testing.T) {
	for is, tails := range map[string][]string{
		"The shop opens on Mondays":       {", allegedly", " (rumour)", " (unconfirmed)", ", apart from July", ", excluding holidays", ", as long as Rosie is there"},
		"Der Laden öffnet montags":        {", angeblich", " (unbestätigt)", ", ausgenommen im Juli", ", sofern Lotte da ist", ", es sei denn es regnet", ", heißt es", " (Gerücht)"},
		"Le magasin ouvre le lundi":       {", paraît-il", " (rumeur)", ", hormis en juillet", ", jusqu'en mai", ", pourvu que Luc soit là"},
		"La tienda abre los lunes":        {", dicen", " (rumor)", ", salvo en julio", ", excepto en julio", ", hasta mayo", ", siempre que esté Ana"},
		"La bottega apre di lunedì":       {", dicono", " (sospetto)", ", tranne a luglio", ", eccetto a luglio", ", fino a maggio", ", purché ci sia Luca"},
		"美咲は来る":                           {" (未定)", "、たぶん", " (予定)"},
		"小王来北京":                           {" (待定)", " (听说)", ",除了夏天"},
		"Anna works at the parish office": {", reportedly", ", other than in July"},
	} {
		for _, tail := range tails {
			if s := signed(is, is+tail); covers(s[1], s[0]) || s[0].hedged {
				t.Errorf("%s%s", is, tail)
			}
		}
	}
}

// TestSaidAgain: what was said again is not put away for what said more before: whatever
// those words are, they may have taken it back.
func TestSaidAgain(t *testing.T) {
	for _, more := range []string{"Anna takes Marcumar (discontinued)", "Anna takes Marcumar, falsch", "Anna takes Marcumar: fällt aus", "Anna takes Marcumar, every morning"} {
		for _, later := range []time.Duration{time.Hour, 0, -time.Hour} {
			s := signed("Anna takes Marcumar.", more)
			s[0].ObservedAt = time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC)
			s[1].ObservedAt = s[0].ObservedAt.Add(later)
			if got, want := covers(s[1], s[0]), later >= 0; got != want {
				t.Errorf("%q, %v later: %v", more, later, got)
			}
		}
	}
	s := signed("Anna takes Marcumar", "Anna takes Marcumar!")
	s[0].ObservedAt = s[0].ObservedAt.AddDate(1, 0, 0)
	if !covers(s[0], s[1]) || !covers(s[1], s[0]) {
		t.Error("the same words are parted by their dates")
	}
}

// TestSelf: what is about the person whose memory it is.
func TestSelf(t *testing.T) {
	for _, c := range []struct {
		text string
		self bool
	}{
		{"Mia lives in Bath.", false}, {"Die Nummer von Mia ist 4711.", false}, {"mia's moved to derby", false},
		{"La mia auto è una Fiat.", true}, {"Mia sorella vive a Roma.", true},
	} {
		if s := signed(c.text)[0]; s.self != c.self {
			t.Errorf("%q is about the person themselves: %v", c.text, s.self)
		}
	}
}

// TestShippedTemplates: each is there, with its placeholders.
func TestShippedTemplates(t *testing.T) {
	for _, form := range Templates() {
		b, err := fs.ReadFile(reverie.Data, form.File)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, p := range form.Placeholders[0] {
			if !strings.Contains(string(b), p) {
				t.Errorf("%s has no %s", form.File, p)
			}
		}
		if err := form.Check(string(b)); err != nil {
			t.Error(err)
		}
	}
}

// TestWrongPlaceholders: a template with one of two placeholders, or a misspelt one, is told
// with its line and what to write, and not used; one without any is.
func TestWrongPlaceholders(t *testing.T) {
	for _, c := range []struct {
		form       template.Template
		text, want string
	}{
		{conflictForm, "Which?\n\n{entry_1} or the other?", `DREAM_CONTRADICTION_PROMPT.txt, line 3: there is {entry_1} and no {entry_2}; write {entry_2} where`},
		{conflictForm, "{entry_2}", "there is {entry_2} and no {entry_1}"},
		{conflictForm, "a\n{entry1} {entry2}", "line 2: {entry1} is no placeholder there; write {entry_1} and {entry_2}"},
		{paraphraseForm, "<!-- mine\n-->\n{contents}", "line 3: {contents} is no placeholder there; write {content}"},
		{taskForm, "{tasks}", "write {content}"},
		{taskForm, "{entry_1} {entry_2}", "write {content}"},
		{harvest.Template, "{history}", "write {transcript}"},
		{harvest.Template, "{transcript} {whatever}", ""},
		{conflictForm, "{entry_1} {entry_2} {whatever}", ""},
		{conflictForm, "{count}: {content}", ""},
		{taskForm, "Say what is done. Answer as {\"a\": 1}.", ""},
	} {
		err := c.form.Check(c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
		var log bytes.Buffer
		mine, shipped := fstest.MapFS{c.form.File: {Data: []byte(c.text)}}, fstest.MapFS{c.form.File: {Data: []byte("Yours.")}}
		if got := c.form.Load(mine, shipped, slog.New(slog.NewTextHandler(&log, nil))); (got == "Yours.") != (c.want != "") || strings.Contains(log.String(), "cannot be used") != (c.want != "") {
			t.Errorf("%q: %q %s", c.text, got, log.String())
		}
	}
}
