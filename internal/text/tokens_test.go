package text

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"reverie/internal/test/expect"
)

var today = time.Date(2026, 3, 18, 12, 0, 0, 0, time.UTC) // a Wednesday

// Each pair is found by the other; of the pairs behind the bar neither is.
var pairs = [languages]string{
	en: `cats/cat running/run went/go bought/buying children/child studies/studying swimming/swam taught/teaching hiking/hikes painted/painting wives/wife
quickly/quick flew/flies wrote/writing adopted/adopting sister's/sister broken/broke moved/moving feet/foot drove/driving |
cat/car house/horse lake/like two/ten mother/brother`,
	de: `wohnungen/wohnung häuser/haus kinder/kind gekauft/kaufen ging/gehen gelaufen/läuft mütter/mutter freunde/freundes schwimmt/geschwommen schrieb/geschrieben
bücher/buch schöne/schönes reiste/gereist hieß/heißt umgezogen/umziehen äpfel/apfel straßen/strasse hunde/hund fliegt/geflogen brachte/gebracht |
hund/hand haus/hase reise/rose tante/tinte lesen/lösen`,
	es: `perros/perro casas/casa niñas/niña compré/compró viajamos/viajar corriendo/correr ciudades/ciudad amigos/amigas trabajando/trabaja cantó/cantar hizo/hacer
tuvo/tener canción/canciones escribió/escribir rápidamente/rápido hermanos/hermana vendió/vender azules/azul luces/luz bebieron/beber |
perro/pero casa/caza niño/nido mesa/misa gato/gasto`,
	fr: `chats/chat maisons/maison amies/amie mangé/manger voyageons/voyager finissent/finir chanté/chanter chevaux/cheval nouvelles/nouvelle rapidement/rapide
vendus/vendu l'amie/amie vu/voir acheté/acheter parlait/parler villes/ville heureuse/heureux né/naître jouaient/jouer lisent/lire |
chat/chien mer/mur pain/main rue/rose bleu/blanc`,
	it: `case/casa gatti/gatto ragazze/ragazza comprato/comprare viaggiando/viaggiare amici/amico città/citta libri/libro cantava/cantare andato/andare velocemente/veloce
l'amica/amica scritto/scrivere visto/vedere lavorano/lavorare belle/bella giocavano/giocare finito/finire tavoli/tavolo mangiato/mangiare |
gatto/matto casa/cosa libro/labbro mare/madre pane/cane`,
	pt: `casas/casa gatos/gato meninas/menina comprou/comprar viajamos/viajar correndo/correr cidades/cidade amigos/amiga trabalhando/trabalhar cantou/cantar fez/fazer
teve/ter escreveu/escrever rapidamente/rápido irmãos/irmão vendeu/vender azuis/azul canções/canção falaram/falar livros/livro |
gato/pato casa/cesta livro/lavra mar/mãe pão/cão`,
	ru: `книги/книга собаки/собака городов/город друзья/друг купила/купить читала/читать домами/дом красивая/красивый работает/работать детей/ребенок
машины/машина сестры/сестра играл/играть рыбу/рыба пошла/идти новые/новый кошке/кошка музыку/музыка говорили/говорить людей/человек |
кот/кит дом/дым книга/кино рыба/рыбак соль/стол`,
}

func TestStems(t *testing.T) {
	for lang, list := range pairs {
		same, other, _ := strings.Cut(list, "|")
		n := 0
		for pair := range strings.FieldsSeq(same) {
			n++
			x, y, _ := strings.Cut(pair, "/")
			if sx, sy := stem(foldWord(x), Language(lang)), stem(foldWord(y), Language(lang)); sx != sy {
				t.Errorf("language %d: %s is stored as %s, %s as %s", lang, x, sx, y, sy)
			}
		}
		if n < 20 {
			t.Errorf("language %d: %d pairs, 20 are asked for", lang, n)
		}
		for pair := range strings.FieldsSeq(other) {
			x, y, _ := strings.Cut(pair, "/")
			if sx, sy := stem(foldWord(x), Language(lang)), stem(foldWord(y), Language(lang)); sx == sy {
				t.Errorf("language %d: %s and %s are both %s", lang, x, y, sx)
			}
		}
	}
}

func TestDetect(t *testing.T) {
	tests := []struct {
		text string
		want []Language
	}{
		{"We moved to a new flat in the spring", []Language{en}}, {"Wir sind im Frühling in eine neue Wohnung gezogen", []Language{de}},
		{"Nos mudamos con los niños a un piso nuevo", []Language{es}}, {"Nous avons déménagé au printemps dans un nouvel appartement", []Language{fr}},
		{"Ci siamo trasferiti in una nuova casa in primavera", []Language{it}}, {"Nós mudamos para um apartamento novo na primavera", []Language{pt}},
		{"Весной мы переехали в новую квартиру", []Language{ru}}, {"WLAN 4711", latin},
	}
	for _, tt := range tests {
		if got := Detect(Tokens(tt.text)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.text, got, tt.want)
		}
	}
}

func TestTerms(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"numbers stay", "The code is 4711", "the code be 4711"}, {"short words stay", "Jo and the EU", "jo and the eu"},
		{"time", "at 17:30 with the dog", "at 17x30 17 30 with the dog"}, {"ordinals", "the 8th of the row", "the 8 of the row"},
		{"possessive and apostrophe", "it’s the sister's", "it the sister"}, {"full width", "the ＡＢＣ", "the abc"},
		{"composed or not", "the cafe\u0301 and the café", "the cafe and the cafe"}, {"Han alone and in pairs", "我在柏林", "我 我在 在 在柏 柏 柏林 林"},
		{"Thai in pairs", "แมว", "แม มว"}, {"emoji", "🎂", "u1f382"}, {"nothing", " \x00\t", ""},
	}
	for _, tt := range tests {
		if got := strings.Join(Terms(Tokens(tt.text)), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestDatesIn(t *testing.T) {
	const full = "date2023x5x8"
	for _, text := range []string{"on 8 May 2023", "May 8th, 2023", "am 8. Mai 2023", "el 8 de mayo de 2023", "le 8 mai 2023", "2023-05-08", "8.5.2023", "2023年5月8日", "8 мая 2023"} {
		if got := DatesIn(Tokens(text)); !slices.Contains(got, full) {
			t.Errorf("%s: %v lacks %s", text, got, full)
		}
	}
	for _, text := range []string{"may I ask", "we march on", "the code is 4711", "8 apples"} {
		if got := DatesIn(Tokens(text)); len(got) > 0 {
			t.Errorf("%s: %v, want no date", text, got)
		}
	}
	if got := DatesIn(Tokens("in May")); !slices.Equal(got, []string{"datem5"}) {
		t.Errorf("in May: %v", got)
	}
}

func TestSpan(t *testing.T) {
	tests := []struct{ text, from, to string }{
		{"what did I do yesterday", "2026-03-17", "2026-03-18"}, {"was war gestern", "2026-03-17", "2026-03-18"},
		{"что было вчера", "2026-03-17", "2026-03-18"}, {"昨天吃了什么", "2026-03-17", "2026-03-18"},
		{"where were we last week", "2026-03-09", "2026-03-16"}, {"wo waren wir letzte Woche", "2026-03-09", "2026-03-16"},
		{"la semana pasada", "2026-03-09", "2026-03-16"}, {"la semaine dernière", "2026-03-09", "2026-03-16"},
		{"last month", "2026-02-01", "2026-03-01"}, {"im letzten Jahr", "2025-01-01", "2026-01-01"}, {"this year", "2026-01-01", "2027-01-01"},
		{"three days ago", "2026-03-14", "2026-03-17"}, {"vor drei Tagen", "2026-03-14", "2026-03-17"},
		{"last spring", "2025-03-01", "2025-06-01"}, {"im Frühling", "2026-03-01", "2026-06-01"}, {"im letzten Winter", "2025-12-01", "2026-03-01"},
		{"l'été dernier", "2025-06-01", "2025-09-01"}, {"in autumn 2023", "2023-09-01", "2023-12-01"}, {"el verano pasado", "2025-06-01", "2025-09-01"},
		{"на прошлой зиме, зимой", "2025-12-01", "2026-03-01"},
		{"on Monday", "2026-03-16", "2026-03-17"}, {"am Mittwoch", "2026-03-11", "2026-03-12"},
	}
	for _, tt := range tests {
		from, to, ok := RelativeSpan(Tokens(tt.text), today)
		if got := from.Format(time.DateOnly) + " " + to.Format(time.DateOnly); !ok || got != tt.from+" "+tt.to {
			t.Errorf("%s: %s (%v), want %s %s", tt.text, got, ok, tt.from, tt.to)
		}
	}
	for _, text := range []string{"what is the code", "a week is long", "an apple", "zwei Wochen vor dem Umzug"} {
		if from, to, ok := RelativeSpan(Tokens(text), today); ok {
			t.Errorf("%s: %v to %v, want no time", text, from, to)
		}
	}
}

func TestDaysAway(t *testing.T) {
	for _, tt := range []struct {
		text     string
		from, to int
	}{
		{"What happened two weeks before the move?", -17, -11}, {"the day after the exam", 1, 1}, {"zwei Wochen vor dem Umzug", -17, -11},
		{"un mois après le mariage", 20, 40}, {"tres días antes de la boda", -3, -3}, {"una settimana dopo", 4, 10},
	} {
		from, to, ok := DaysAway(Tokens(tt.text))
		if !ok || from != tt.from || to != tt.to {
			t.Errorf("%s: %d to %d (%v), want %d to %d", tt.text, from, to, ok, tt.from, tt.to)
		}
	}
	if _, _, ok := DaysAway(Tokens("vor zwei Wochen, two weeks ago, last week")); ok {
		t.Error("a time counted from now is no offset")
	}
}

// Whatever the text, its terms are letters and digits: nothing that the query
// language of the index could read otherwise.
func FuzzTerms(f *testing.F) {
	for _, s := range []string{`"' OR 1`, "NEAR(a b)", "e\u0301\x00\xff", "👩‍👩‍👧 柏林ー", "8.5.2023 17:30", "'''"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, term := range Terms(Tokens(text)) {
			if term == "" {
				t.Fatalf("%q: an empty term", text)
			}
			for _, r := range term {
				if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
					t.Fatalf("%q: the term %q holds %q", text, term, r)
				}
			}
		}
	})
}

// TestMonthsBetween: two months stand for those between them if words say so.
func TestMonthsBetween(t *testing.T) {
	const three = "datem3 datem4 datem5"
	for s, want := range map[string]string{
		"what happened between March and May": three, "from March to May": three, "Was war von März bis Mai?": three, "zwischen März und Mai": three, "de marzo a mayo": three,
		"entre marzo y mayo": three, "de mars à juin": three + " datem6", "entre mars et juin": three + " datem6", "da marzo a maggio": three, "tra marzo e maggio": three, "3月から5月まで": three, "从3月到5月": three,
		"in March and in May": "datem3 datem5", "März und Mai": "datem3 datem5", "from November to January": "datem11 datem12 datem1", "from May to May": "datem5",
	} {
		got := DatesIn(Tokens(s))
		slices.Sort(got)
		terms := strings.Fields(want)
		slices.Sort(terms)
		if !slices.Equal(got, terms) {
			t.Errorf("%s: %v, want %v", s, got, terms)
		}
	}
}

// TestSmallTalk: a word alone, whose language is not clear, is small talk only if it is so as it is written or
// as a courtesy; not because its stem in another language is a pronoun.
func TestSmallTalk(t *testing.T) {
	for word, want := range map[string]bool{"tea": false, "wine": false, "thanks": true, "danke": true, "gracias": true, "tomorrow": true} {
		ws := Tokens(word)
		if got := IsSmallTalk(ws[0], Detect(ws)); got != want {
			t.Errorf("%s: small talk %v", word, got)
		}
	}
}

// Words of ASCII are folded without a table. The result must be the same: the index holds it.
func TestFoldASCII(t *testing.T) {
	for r := range rune(unicode.MaxASCII + 1) {
		word := "Word" + string(r) + "S"
		expect.Equal(t, foldWord(word), bareNumber(plainLetters.Replace(folded.String(word))))
	}
}
