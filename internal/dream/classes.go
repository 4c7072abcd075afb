package dream

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"reverie/internal/text"
)

// class is a question that has one answer at a time: where somebody lives, what a code
// is. Only within one class can a text take the place of another.
type class struct {
	name  string
	says  *regexp.Regexp  // in lower case; its group, if it has one, is what the question is about
	words map[string]bool // that say only which question it is
	lead  map[string]bool // what the answer follows
	named bool            // the answer is a name or a number
	most  int             // words the answer may have
}

// found is a class that a text belongs to, and what it is about there.
type found struct {
	class *class
	key   string
}

const (
	copula = ` est es è is ist are sind was lautet heißt called named to auf beträgt now = `
	number = `number nummer no nr numéro número numero `
)

// classes is the table of such questions. A text that belongs to none is never
// superseded, and one of words with many answers at a time (a friend, a hobby, a
// meeting) must not be in it.
var classes = []*class{
	{"residence", anyOf(`lives?|living|resides?|moved|relocated|based|home is|hometown is|residence is|home city is|` +
		`wohnt|wohne|wohnhaft|lebt|lebe|umgezogen|gezogen|zieht|ziehe|zog|wohnort ist|wohnsitz ist|habite|vit|vis|déménagé|installée?|réside|vive|vivo|reside|mudó|mudado|abita|abito|risiede|trasferit[oa]|живет|живёт|переехал[аи]?`),
		wordSet(`live lives living reside resides moved move relocated based home city town residence hometown place flat apartment house over
wohnt wohne wohnhaft lebt lebe umgezogen gezogen zieht ziehe zog wohnort wohnsitz stadt um habite vit vis a installé déménagé réside vive vivo reside mudó mudado se ha abita abito risiede si è trasferito trasferita живет живёт переехал переехала`),
		wordSet(`in to nach is ist na en à a в на`), true, 3},
	{"employer", anyOf(`works? (?:now )?(?:at|for)|working (?:at|for)|employed (?:at|by)|employer is|job (?:at|with)|hired by|arbeitet (?:jetzt |nun )?(?:bei|für)|arbeite (?:jetzt |nun )?(?:bei|für)|angestellt bei|beschäftigt bei|arbeitgeber ist|travaille (?:maintenant )?(?:chez|pour)|trabaja (?:ahora )?(?:en|para)|lavora (?:ora |adesso )?(?:per|presso|da|alla)`),
		wordSet(`work works working employed employer job hired started company arbeitet arbeite angestellt beschäftigt arbeitgeber firma travaille trabaja lavora`),
		wordSet(`at for by with is bei für ist chez pour en para per presso da alla`), false, 3},
	{"job", anyOf(`works? (?:now )?as|working as|job is|occupation is|profession is|job title is|arbeitet (?:jetzt |nun )?als|arbeite (?:jetzt |nun )?als|von beruf|beruf ist|travaille (?:maintenant )?comme|trabaja (?:ahora )?como|lavora (?:ora |adesso )?come`),
		wordSet(`work works working job occupation profession title career arbeitet arbeite beruf travaille trabaja lavora`), wordSet(`as is als ist to comme como come`), false, 3},
	{"phone", anyOf(`((?:\p{L}+)?(?:phone|telephone|mobile|cell|handy|telefon|festnetz|rufnummer|téléphone|teléfono|móvil|cellulare)\p{L}*)`),
		wordSet(`téléphone teléfono móvil telefono cellulare numéro número numero phone telephone mobile cell handy telefon festnetz telefonnummer handynummer rufnummer ` + number), wordSet(copula), true, 6},
	{"code", anyOf(`(\p{L}*-?(?:code|pin|password|passcode|passphrase|combination|username|passwort|kennwort|kombination|benutzername|iban|kennzeichen|plate|(?:wlan|wpa|api|lizenz)-?schlüssel|kontonummer|nummer|number|contraseña|código|codice|mot de passe))`),
		wordSet(number), wordSet(copula), false, 4},
	{"size", anyOf(`(shoe size|height|weight|salary|rent|budget|deadline|blood type|desk|seat|locker|office|room|schuhgröße|größe|gewicht|gehalt|miete|blutgruppe|frist|tisch|platz|schließfach|büro|zimmer)(?:(?: number)? is|(?: nummer)? ist| beträgt| changed| is now| ist jetzt)`),
		wordSet(`shoe size height weight salary rent budget deadline blood type desk seat locker office room schuhgröße größe gewicht gehalt miete blutgruppe frist tisch platz schließfach büro zimmer ` + number),
		wordSet(copula), true, 3},
	{"birth", anyOf(`birthday|date of birth|birthdate|born|geburtstag|geboren|geburtsdatum`), wordSet(`birthday date birth birthdate born geburtstag geboren geburtsdatum`),
		wordSet(`on in is am im ist`), true, 4},
	{"age", anyOf(`\d+ years? old|\d+ jahre alt|age is|aged|alter ist`), wordSet(`year years old age aged jahre jahr alt alter`), wordSet(`is ist aged turned`), true, 1},
	{"spouse", anyOf(`(married to|verheiratet mit|husband|wife|spouse|partner|girlfriend|boyfriend|fiancée?|ehemann|ehefrau|freundin|partnerin|verlobte)`),
		wordSet(`married verheiratet husband wife spouse partner girlfriend boyfriend fiancé fiancée ehemann ehefrau freundin partnerin verlobte`), wordSet(copula + `mit`), true, 3},
	{"zone", anyOf(`time ?zone|zeitzone`), wordSet(`time zone timezone zeitzone`), wordSet(copula + `in`), false, 3},
	{"favourite", regexp.MustCompile(`favou?rite (\p{L}+)|(lieblings-?\p{L}+)`), wordSet(`favourite favorite`), wordSet(copula), false, 3},
	{"mail", anyOf(`e-?mail|mail address|mailadresse`), wordSet(`e email mail address adresse mailadresse`), wordSet(copula), true, 8},
	{"address", anyOf(`address is|adresse ist|lives at|anschrift ist`), wordSet(`address adresse anschrift lives live`), wordSet(copula + `at`), true, 6},
	{"study", anyOf(`studies at|attends|enrolled at|studiert an|studiere an`), wordSet(`study studies attends enrolled studiert studiere school university schule universität`),
		wordSet(`at an attends in`), true, 3},
	{"role", anyOf(`(\p{L}+'s|my|mein|meine|\p{L}+s) (boss|manager|supervisor|doctor|dentist|gp|therapist|landlord|hairdresser|accountant|chef|chefin|vermieter|hausarzt|hausärztin|zahnarzt|zahnärztin|steuerberater|bank|gym|insurer|provider|krankenkasse|fitnessstudio) (?:is|ist|heißt)`),
		wordSet(`boss manager supervisor doctor dentist gp therapist landlord hairdresser accountant chef chefin vermieter hausarzt hausärztin zahnarzt zahnärztin steuerberater bank gym insurer provider krankenkasse fitnessstudio dr`),
		wordSet(copula), true, 3},
}

// appendices begin what adds to an answer, and goes with it.
var appendices = text.Set("appendix")

// ofThings are the classes that ask of a thing as well as of a person.
var ofThings = wordSet(`phone code size address mail`)

func classesOf(text string) []found {
	low := " " + strings.Join(strings.Fields(strings.ToLower(strings.ReplaceAll(text, "’", "'"))), " ") + " "
	var out []found
	for _, c := range classes {
		m := c.says.FindStringSubmatch(low)
		if m == nil {
			continue
		}
		key := strings.Join(slices.DeleteFunc(m[min(1, len(m)):], func(s string) bool { return strings.HasSuffix(s, "'s") }), " ")
		out = append(out, found{c, strings.TrimSpace(key)})
	}
	return out
}

// countries are asked for with the same words as towns, and are true beside them.
var countries = text.Set("country")

// conflicting reports whether a and b give different answers to one question, or say
// that the same is so and is not so, and names the question; "" = they do not.
func conflicting(a, b *signature) string {
	if a.compound || b.compound || !together(a, b) || otherPersons(a, b) {
		return ""
	}
	if a.negative != b.negative {
		if len(a.content) > 1 && slices.Equal(a.content, b.content) && sameNames(a, b) && (len(a.protectedNames()) > 0 || !nobody(a, b)) {
			return "negation"
		}
		return ""
	}
	if a.negative || a.hedged || b.hedged || b.adds {
		return ""
	}
	for _, f := range a.classes {
		if slices.Contains(b.classes, f) && f.class.conflicts(a, b) {
			return f.class.name
		}
	}
	return ""
}

// sameNames reports whether a and b have the same names and numbers: a stem may be
// shared by two of them. Their order counts: who is older than Ben is not who Ben is older than.
func sameNames(a, b *signature) bool {
	verb := func(t token) bool { return !t.small }
	return slices.Equal(a.protectedNames(), b.protectedNames()) && a.smallNames(verb) == b.smallNames(verb)
}

func (s *signature) protectedNames() (names []string) {
	for _, t := range s.tokens {
		if t.name && !asides[t.text] && !slices.Contains(names, t.text) {
			names = append(names, t.text)
		}
	}
	return names
}

// conflicts reports whether a and b give different answers to the question c about the same.
func (c *class) conflicts(a, b *signature) bool {
	x, ok := c.answer(a, b)
	if !ok {
		return false
	}
	y, ok := c.answer(b, a)
	asks := func(t token) bool { return c.words[t.text] }
	if !ok || sort(x.words) != sort(y.words) || a.smallNames(asks) != b.smallNames(asks) {
		return false
	}
	words, names := 0, 0 // that both share, and that the answer is about
	for i, t := range a.tokens {
		if j := b.index(t); i >= x.at || j < 0 || j >= y.at || t.small || asides[t.text] || c.words[t.text] {
			continue
		}
		words, names = words+1, names+flag(t.name)
	}
	switch {
	case words == 0 && nobody(a, b):
		return false
	case names > 0, a.Subject != "", a.self && b.self, x.start == 0 && y.start == 0:
		return true
	}
	return ofThings[c.name] && words > 1 // the garage door's code
}

type answer struct {
	words     []token
	at, start int // of the answer, of what says which question it is
}

// answer is what a says to the question c that b says otherwise: one run of a few
// words that follows what an answer follows. ok is false if they differ in anything else.
func (c *class) answer(a, b *signature) (answer, bool) {
	out := answer{at: -1, start: -1}
	last := 0
	for i, t := range a.tokens {
		if t.after && len(out.words) > 0 && appendices[t.text] {
			break // in Berlin, near the park
		}
		if c.words[t.text] && out.start < 0 {
			out.start = len(slices.DeleteFunc(slices.Clone(a.tokens[:i]), func(t token) bool { return t.small }))
		}
		if t.former || t.small || asides[t.text] || c.words[t.text] || c.lead[t.text] || b.index(t) >= 0 {
			continue
		}
		if len(out.words) > 0 && (i != last+1 && !joins(a.tokens[last+1:i]) || t.after) {
			return answer{}, false
		}
		if len(out.words) == 0 {
			out.at = i
		}
		out.words, last = append(out.words, t), i
	}
	if len(out.words) == 0 || len(out.words) > c.most || c.named && sort(out.words) == "word" {
		return answer{}, false
	}
	return out, c.leads(a.tokens, out.at)
}

// leads reports whether an answer may stand at.
func (c *class) leads(tokens []token, at int) bool {
	if tokens[at].after {
		return true
	}
	for i := at - 1; i >= 0; i-- {
		switch t := tokens[i]; {
		case c.lead[t.text]:
			return true
		case !articles[t.text] && !asides[t.text]:
			return false
		}
	}
	return false
}

// index is where s has a word that may be t, or -1.
func (s *signature) index(t token) int {
	return slices.IndexFunc(s.tokens, func(u token) bool {
		if u.former {
			return false
		}
		if t.text == u.text {
			return true
		}
		if t.name || u.name { // which are not inflected, but for whose something is
			return s.names.same(t, u)
		}
		return slices.ContainsFunc(t.stems, func(x int32) bool { return slices.Contains(u.stems, x) })
	})
}

func joins(between []token) bool {
	return !slices.ContainsFunc(between, func(t token) bool {
		return !articles[t.text] && t.text != "of" && t.text != "de" && t.text != "la" && t.text != "von" && t.text != "am"
	})
}

func hasDigit(s string) bool { return strings.ContainsFunc(s, unicode.IsDigit) }

// sort says what sort of answer it is: answers of different sorts do not contradict
// each other.
func sort(words []token) string {
	switch {
	case slices.ContainsFunc(words, func(t token) bool { return hasDigit(t.text) }):
		return "number"
	case slices.ContainsFunc(words, func(t token) bool { return countries[t.text] }):
		return "country"
	case words[0].name:
		return "name"
	}
	return "word"
}
