package main

// attribute is a question about a person and its possible answers. In wordings {p} is the person, {v}
// the answer, {o} the earlier answer.
type attribute struct {
	name   string
	values []string // "%d" is replaced by a new number each time
	say    []string // equivalent wordings of the answer
	update []string // wordings of a later answer that replaces it; empty = it never changes
	not    []string // wordings of a withdrawal; empty = it is never withdrawn
	each   int      // number of simultaneous answers; 0 = one
	of     int      // one of so many people has it; 0 = everyone
	again  bool     // in half of the cases a later answer is replaced, too
}

// set is a language or a writing style.
type set struct {
	name   string
	people []string
	attrs  []attribute
	join   string      // joins two sentences into one entry
	self   []attribute // about the writer, in the first person
}

var people = []string{
	"Anna", "Boris", "Clara", "Dilan", "Edgar", "Fatma", "Gregor", "Hanna", "Ivan", "Judith", "Karim", "Lena", "Mirko", "Nadia", "Oskar",
	"Petra", "Quentin", "Rosa", "Sergej", "Tamara", "Ulrich", "Vera", "Wanda", "Xaver", "Yara", "Zeno", "Amir", "Berta", "Cem", "Dora",
}

var (
	cities  = []string{"Berlin", "Hamburg", "Oslo", "Lisbon", "Vienna", "Zurich", "Leipzig", "Ghent", "Turin", "Krakow", "Bergen", "Porto"}
	people2 = []string{"Felix", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Liam", "Mona", "Nils", "Olga", "Paul", "Rita"}
	phones  = []string{"0170 4711%02d", "0151 4712%02d", "030 555%03d", "+49 221 98%03d"}
	pins    = []string{"47%02d", "81%02d", "30%02d"}
)

var english = set{
	name: "english", people: people, join: "%s, and %s",
	attrs: []attribute{
		{name: "city", values: cities,
			say:    []string{"{p} lives in {v}", "{p}'s home is in {v}", "{p} is living in {v}"},
			update: []string{"{p} has moved to {v}", "{p} now lives in {v}", "{p} relocated to {v}"}},
		{name: "parents", values: cities, of: 3, say: []string{"{p}'s parents live in {v}"}},
		{name: "once", values: []string{"Bonn", "Kiel", "Ulm", "Bath"}, of: 3, say: []string{"{p} used to live in {v} as a child"}},
		{name: "job", values: []string{"nurse", "carpenter", "teacher", "lawyer", "baker", "pilot", "chemist", "plumber"},
			say:    []string{"{p} works as a {v}", "{p}'s job is {v}", "{p} is a {v} by profession"},
			update: []string{"{p} changed careers and is a {v} now", "{p} started working as a {v}"}},
		{name: "brotherjob", values: []string{"farmer", "singer", "welder"}, of: 4, say: []string{"{p}'s brother works as a {v}"}},
		{name: "phone", values: phones,
			say:    []string{"{p}'s phone number is {v}", "You can reach {p} at {v}", "{p} has the phone number {v}"},
			update: []string{"{p}'s new phone number is {v}", "{p} changed the number, it is {v} now"}},
		{name: "garage", values: pins,
			say: []string{"The code of {p}'s garage is {v}", "{p}'s garage code is {v}"}, update: []string{"The code of {p}'s garage was changed to {v}"}},
		{name: "cellar", values: pins, say: []string{"The code of {p}'s cellar is {v}", "{p}'s cellar code is {v}"}},
		{name: "birthday", values: []string{"3 May", "17 June", "21 October", "9 January", "30 August", "12 December"},
			say: []string{"{p}'s birthday is on {v}", "{p} was born on {v}"}},
		{name: "partner", values: people2, say: []string{"{p} is married to {v}", "{p}'s spouse is {v}"}, update: []string{"{p} has got divorced and is married to {v} now"}},
		{name: "colour", values: []string{"green", "violet", "orange", "turquoise", "yellow", "crimson"},
			say: []string{"{p}'s favourite colour is {v}", "The colour {p} likes best is {v}"}, update: []string{"{p}'s favourite colour is {v} now"}},
		{name: "food", values: []string{"sushi", "lasagne", "ramen", "goulash", "falafel", "paella"}, each: 2,
			say: []string{"{p} likes {v}", "{p} enjoys eating {v}"}, not: []string{"{p} doesn't like {v} any more", "{p} no longer likes {v}"}},
		{name: "allergy", values: []string{"hazelnuts", "penicillin", "pollen", "shellfish"}, each: 2, of: 2, say: []string{"{p} is allergic to {v}", "{p} has an allergy to {v}"}},
		{name: "language", values: []string{"Dutch", "Czech", "Turkish", "Finnish"}, each: 2, of: 2, say: []string{"{p} speaks {v}", "{p} can speak {v}"}},
		{name: "pet", values: []string{"a cat called Minka", "a dog called Bruno", "a parrot called Coco"}, each: 2, of: 2, say: []string{"{p} has {v}", "{p} owns {v}"}},
		{name: "car", values: []string{"Skoda", "Volvo", "Fiat", "Toyota"}, say: []string{"{p} drives a {v}", "{p}'s car is a {v}"}, update: []string{"{p} sold the old car and drives a {v} now"}},
		{name: "trip", values: []string{"Rome in 2019", "Paris in 2021", "Kyoto in 2018", "Cairo in 2022"}, each: 2, of: 2, say: []string{"{p} visited {v}", "{p} went to {v}"}},
		{name: "size", values: []string{"38", "41", "43", "45"}, of: 2, say: []string{"{p}'s shoe size is {v}", "{p} wears shoes of size {v}"}},
		{name: "smoke", values: []string{"chess", "tennis", "the cello", "poker"}, say: []string{"{p} plays {v}", "{p} regularly plays {v}"}, not: []string{"{p} stopped playing {v}", "{p} doesn't play {v} any more"}},
		{name: "team", values: []string{"Monday at 9:00", "Tuesday at 14:30", "Thursday at 11:15"}, of: 2,
			say: []string{"{p}'s team meeting is on {v}", "{p} has the team meeting on {v}"}, update: []string{"{p}'s team meeting has been moved to {v}"}},
	},
}

var german = set{
	name: "german", people: people, join: "%s, und %s",
	attrs: []attribute{
		{name: "city", values: []string{"Berlin", "Hamburg", "Köln", "München", "Wien", "Zürich", "Leipzig", "Bremen", "Graz", "Bern"},
			say:    []string{"{p} wohnt in {v}", "{p} lebt in {v}", "{p} ist in {v} zu Hause"},
			update: []string{"{p} ist nach {v} gezogen", "{p} wohnt jetzt in {v}", "{p} ist nach {v} umgezogen"}},
		{name: "parents", values: []string{"Ulm", "Kiel", "Trier"}, of: 3, say: []string{"Die Eltern von {p} wohnen in {v}"}},
		{name: "once", values: []string{"Bonn", "Jena", "Emden"}, of: 3, say: []string{"{p} hat als Kind in {v} gewohnt"}},
		{name: "job", values: []string{"Krankenpfleger", "Tischler", "Lehrer", "Anwalt", "Bäcker", "Pilot", "Chemiker"},
			say:    []string{"{p} arbeitet als {v}", "{p} ist {v} von Beruf", "Der Beruf von {p} ist {v}"},
			update: []string{"{p} hat den Beruf gewechselt und ist jetzt {v}", "{p} arbeitet inzwischen als {v}"}},
		{name: "brotherjob", values: []string{"Landwirt", "Sänger", "Schweißer"}, of: 4, say: []string{"Der Bruder von {p} arbeitet als {v}"}},
		{name: "phone", values: phones,
			say:    []string{"Die Telefonnummer von {p} ist {v}", "{p} ist unter {v} zu erreichen", "{p} hat die Telefonnummer {v}"},
			update: []string{"Die neue Telefonnummer von {p} ist {v}", "{p} hat jetzt die Nummer {v}"}},
		{name: "garage", values: pins,
			say: []string{"Der Code für die Garage von {p} ist {v}", "{p}s Garagencode ist {v}"}, update: []string{"Der Code für die Garage von {p} wurde auf {v} geändert"}},
		{name: "cellar", values: pins, say: []string{"Der Code für den Keller von {p} ist {v}", "{p}s Kellercode ist {v}"}},
		{name: "birthday", values: []string{"3. Mai", "17. Juni", "21. Oktober", "9. Januar", "30. August"},
			say: []string{"{p} hat am {v} Geburtstag", "{p} wurde am {v} geboren", "{p}s Geburtstag ist der {v}"}},
		{name: "partner", values: people2, say: []string{"{p} ist mit {v} verheiratet", "{p} und {v} sind verheiratet"}, update: []string{"{p} ist geschieden und jetzt mit {v} verheiratet"}},
		{name: "colour", values: []string{"Grün", "Violett", "Orange", "Türkis", "Gelb"},
			say: []string{"{p}s Lieblingsfarbe ist {v}", "Die Lieblingsfarbe von {p} ist {v}"}, update: []string{"{p}s Lieblingsfarbe ist inzwischen {v}"}},
		{name: "food", values: []string{"Sushi", "Lasagne", "Gulasch", "Falafel", "Spätzle"}, each: 2,
			say: []string{"{p} mag {v}", "{p} isst gern {v}"}, not: []string{"{p} mag {v} nicht mehr", "{p} mag kein {v} mehr"}},
		{name: "allergy", values: []string{"Haselnüsse", "Penicillin", "Pollen", "Muscheln"}, each: 2, of: 2, say: []string{"{p} ist gegen {v} allergisch", "{p} hat eine Allergie gegen {v}"}},
		{name: "language", values: []string{"Niederländisch", "Tschechisch", "Türkisch"}, each: 2, of: 2, say: []string{"{p} spricht {v}", "{p} kann {v} sprechen"}},
		{name: "pet", values: []string{"eine Katze namens Minka", "einen Hund namens Bruno"}, each: 2, of: 2, say: []string{"{p} hat {v}", "{p} besitzt {v}"}},
		{name: "car", values: []string{"Skoda", "Volvo", "Fiat", "Toyota"}, say: []string{"{p} fährt einen {v}", "{p}s Auto ist ein {v}"}, update: []string{"{p} hat das alte Auto verkauft und fährt jetzt einen {v}"}},
		{name: "trip", values: []string{"2019 in Rom", "2021 in Paris", "2018 in Kyoto"}, each: 2, of: 2, say: []string{"{p} war {v}", "{p} war {v} im Urlaub"}},
		{name: "size", values: []string{"38", "41", "43", "45"}, of: 2, say: []string{"{p} hat Schuhgröße {v}", "Die Schuhgröße von {p} ist {v}"}},
		{name: "play", values: []string{"Schach", "Tennis", "Cello", "Poker"}, say: []string{"{p} spielt {v}", "{p} spielt regelmäßig {v}"}, not: []string{"{p} spielt kein {v} mehr", "{p} hat mit {v} aufgehört"}},
		{name: "team", values: []string{"Montag um 9:00 Uhr", "Dienstag um 14:30 Uhr", "Donnerstag um 11:15 Uhr"}, of: 2,
			say: []string{"{p}s Teamsitzung ist am {v}", "{p} hat die Teamsitzung am {v}"}, update: []string{"{p}s Teamsitzung wurde auf {v} verlegt"}},
	},
}

// heldOut and heldOutGerman were written before the dreamer's word lists. Nothing may be tuned to them.
var heldOut = set{
	name: "held-out", people: people, join: "%s; %s",
	attrs: []attribute{
		{name: "home", values: cities,
			say:    []string{"{p} resides in {v}", "{p} is based in {v}", "{p} has a flat in {v}"},
			update: []string{"{p} packed up and settled in {v} last month", "As of this spring {p} is based in {v}"}},
		{name: "office", values: cities, of: 3, say: []string{"{p}'s employer has an office in {v}"}},
		{name: "grew", values: []string{"Leeds", "Ulm", "Gdansk"}, of: 3, say: []string{"{p} grew up in {v}"}},
		{name: "employer", values: []string{"Siemens", "Lidl", "Nokia", "Philips", "Bosch"},
			say: []string{"{p} is employed by {v}", "{p} works for {v}", "{p} has a contract with {v}"}, update: []string{"{p} quit and joined {v}", "{p} now works for {v}"}},
		{name: "mobile", values: phones, say: []string{"Mobile of {p}: {v}", "{p} can be called on {v}"}, update: []string{"New mobile of {p}: {v}"}},
		{name: "landline", values: phones, of: 2, say: []string{"Landline of {p}: {v}"}},
		{name: "locker", values: pins, say: []string{"{p} uses locker {v}", "Locker of {p}: {v}"}, update: []string{"{p} was given locker {v} instead"}},
		{name: "alarm", values: pins, say: []string{"To switch off the alarm at {p}'s house, type {v}", "The alarm at {p}'s house is switched off with {v}"}},
		{name: "dentist", values: []string{"Dr. Adler", "Dr. Bosse", "Dr. Conrad", "Dr. Ebert"},
			say: []string{"{p}'s dentist is {v}", "{p} goes to {v} for dental care"}, update: []string{"{p} switched dentists and sees {v} now"}},
		{name: "gym", values: []string{"Mondays", "Wednesdays", "Fridays"}, say: []string{"{p} goes to the gym on {v}", "{p}'s gym day is {v}"}, update: []string{"{p} goes to the gym on {v} from now on"}},
		{name: "age", values: []string{"31 years", "42 years", "53 years", "64 years"}, say: []string{"{p} is {v} old", "{p}'s age is {v}"}},
		{name: "child", values: []string{"Emil", "Frida", "Moritz", "Selma"}, each: 2, of: 2, say: []string{"{p} has a child called {v}", "{v} is a child of {p}"}},
		{name: "drink", values: []string{"oat milk", "black coffee", "green tea", "ginger ale"}, say: []string{"{p} prefers {v}", "{p} would rather have {v}"}, not: []string{"{p} can't stand {v} these days", "{p} has gone off {v}"}},
		{name: "avoid", values: []string{"pork", "gluten", "alcohol", "lactose"}, each: 2, of: 2, say: []string{"{p} does not tolerate {v}", "{p} can't have {v}"}},
		{name: "book", values: []string{"Dune", "Emma", "Ulysses", "Momo"}, of: 2, each: 2, say: []string{"{p} has read {v}", "{p} once read the book {v}"}},
		{name: "laptop", values: []string{"ThinkPad", "MacBook", "Zenbook"}, say: []string{"{p} types on a {v}", "{p}'s laptop is a {v}"}, update: []string{"{p} replaced the laptop with a {v}"}},
		{name: "rent", values: []string{"870 euros", "920 euros", "1140 euros", "1150 euros"}, of: 2, say: []string{"{p} pays {v} of rent", "{p}'s rent is {v}"}, update: []string{"{p}'s rent went up to {v}"}},
		{name: "flight", values: []string{"LH 4711", "LH 4712", "BA 902"}, of: 2, say: []string{"{p} flies with {v} in June", "{p}'s flight in June is {v}"}},
		{name: "choir", values: []string{"soprano", "alto", "tenor", "bass"}, of: 2, say: []string{"{p} sings {v} in the choir", "In the choir {p} sings {v}"}},
		{name: "wifi", values: []string{"kiwi-%02d", "plum-%02d"}, say: []string{"The wifi password at {p}'s place is {v}", "{p}'s wifi password: {v}"}, update: []string{"{p} set a new wifi password: {v}"}},
	},
}

var heldOutGerman = set{
	name: "held-out german", people: people, join: "%s; %s",
	attrs: []attribute{
		{name: "home", values: []string{"Bremen", "Essen", "Graz", "Basel", "Mainz"},
			say:    []string{"{p} ist in {v} ansässig", "{p} hat eine Wohnung in {v}", "{p}s Wohnort ist {v}"},
			update: []string{"{p} hat sich inzwischen in {v} niedergelassen", "Seit dem Frühjahr lebt {p} in {v}"}},
		{name: "office", values: []string{"Fulda", "Siegen"}, of: 3, say: []string{"Die Firma von {p} hat ein Büro in {v}"}},
		{name: "grew", values: []string{"Gera", "Emden"}, of: 3, say: []string{"{p} ist in {v} aufgewachsen"}},
		{name: "employer", values: []string{"Siemens", "Lidl", "Nokia", "Bosch"},
			say: []string{"{p} ist bei {v} angestellt", "{p} arbeitet für {v}", "{p}s Arbeitgeber ist {v}"}, update: []string{"{p} hat gekündigt und arbeitet nun bei {v}"}},
		{name: "mobile", values: phones, say: []string{"Handy von {p}: {v}", "{p} hat die Handynummer {v}"}, update: []string{"Neue Handynummer von {p}: {v}"}},
		{name: "landline", values: phones, of: 2, say: []string{"Festnetz von {p}: {v}"}},
		{name: "locker", values: pins, say: []string{"{p} hat den Spind {v}", "Spind von {p}: {v}"}, update: []string{"{p} hat stattdessen den Spind {v} bekommen"}},
		{name: "alarm", values: pins, say: []string{"Die Alarmanlage bei {p} schaltet man mit {v} aus"}},
		{name: "dentist", values: []string{"Dr. Adler", "Dr. Bosse", "Dr. Conrad"},
			say: []string{"{p}s Zahnarzt ist {v}", "{p} ist bei {v} in zahnärztlicher Behandlung"}, update: []string{"{p} hat den Zahnarzt gewechselt und geht jetzt zu {v}"}},
		{name: "gym", values: []string{"montags", "mittwochs", "freitags"}, say: []string{"{p} geht {v} ins Fitnessstudio", "{p} trainiert {v} im Fitnessstudio"}, update: []string{"{p} geht ab sofort {v} ins Fitnessstudio"}},
		{name: "age", values: []string{"31", "42", "53"}, say: []string{"{p} ist {v} Jahre alt", "{p}s Alter ist {v} Jahre"}},
		{name: "child", values: []string{"Emil", "Frida", "Moritz"}, each: 2, of: 2, say: []string{"{p} hat ein Kind namens {v}", "{v} ist ein Kind von {p}"}},
		{name: "drink", values: []string{"Hafermilch", "Grüntee", "Ingwerwasser"}, say: []string{"{p} bevorzugt {v}", "{p} trinkt am liebsten {v}"}, not: []string{"{p} kann {v} nicht mehr sehen", "{p} trinkt {v} nicht mehr"}},
		{name: "avoid", values: []string{"Gluten", "Alkohol", "Laktose"}, each: 2, of: 2, say: []string{"{p} verträgt kein {v}", "{p} darf kein {v}"}},
		{name: "book", values: []string{"Dune", "Emma", "Momo"}, each: 2, of: 2, say: []string{"{p} hat {v} gelesen", "{p} hat schon einmal {v} gelesen"}},
		{name: "laptop", values: []string{"ThinkPad", "MacBook", "Zenbook"}, say: []string{"{p} schreibt auf einem {v}", "{p}s Laptop ist ein {v}"}, update: []string{"{p} hat den Laptop durch ein {v} ersetzt"}},
		{name: "rent", values: []string{"870 Euro", "920 Euro", "1140 Euro", "1150 Euro"}, of: 2, say: []string{"{p} zahlt {v} Miete", "{p}s Miete beträgt {v}"}, update: []string{"{p}s Miete ist auf {v} gestiegen"}},
		{name: "choir", values: []string{"Sopran", "Alt", "Tenor", "Bass"}, of: 2, say: []string{"{p} singt {v} im Chor", "Im Chor singt {p} {v}"}},
		{name: "wifi", values: []string{"kiwi-%02d", "plum-%02d"}, say: []string{"Das WLAN-Passwort bei {p} lautet {v}", "{p}s WLAN-Passwort: {v}"}, update: []string{"{p} hat ein neues WLAN-Passwort: {v}"}},
	},
}
