package dream

import (
	"testing"
)

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
