package main

// alikeGerman are people, some with nearly the same name.
var alikeGerman = []string{
	"Jörg", "Jürgen", "Annegret", "Anneliese", "Bülent", "Dörte", "Falk", "Gesa", "Hinnerk", "Ilka", "Janosch", "Käthe", "Lutz", "Marlies", "Marlis",
	"Nuri", "Ottokar", "Pia", "Roswitha", "Sönke", "Tjark", "Ute", "Volker", "Wiebke", "Yasemin", "Zdenko", "Arne", "Arno", "Birte", "Claas", "Detlef", "Elke",
}

// germanLines is written as notes of a key and a value. A subject has many keys at the same time, for
// example the keys 4711 and 4712.
var germanLines = set{name: "german lines", people: alikeGerman, join: "%s / %s", attrs: []attribute{
	{name: "anschrift", values: []string{"Lindenweg 4", "Lindenweg 14", "Am Wall 7", "Am Wall 17", "Kirchstr. 2a", "Kirchstr. 2b", "Deichgasse 30"}, say: []string{"{p}: Anschrift: {v}", "Anschrift {p}: {v}", "{p} – Anschrift = {v}"}, update: []string{"{p}: neue Anschrift: {v}", "{p}: Anschrift: {v} (umgezogen)"}},
	{name: "festnetz", values: []string{"0511 8800%02d", "0511 8810%02d", "(0421) 77 01 %02d"}, say: []string{"{p}: Festnetz: {v}", "Festnetz {p}: {v}"}, update: []string{"{p}: Festnetz neu: {v}", "Festnetz {p}: {v} (alte Nummer abgemeldet)"}},
	{name: "fax", values: []string{"0511 8805%02d", "0511 8815%02d"}, of: 2, say: []string{"{p}: Fax: {v}", "Fax {p}: {v}"}},
	{name: "mail", values: []string{"k%02d@beispiel.de", "m%02d@beispiel.org"}, say: []string{"{p}: Mail: {v}", "Mail {p}: {v}"}, update: []string{"{p}: Mail geändert: {v}", "Mail {p}: {v} (ab sofort)"}},
	{name: "abteilung", values: []string{"Einkauf", "Verkauf", "Lager", "Buchhaltung", "Empfang"}, say: []string{"{p}: Abteilung: {v}", "Abteilung {p}: {v}"}, update: []string{"{p}: wechselt Abteilung: {v}", "{p}: Abteilung: {v} seit 1.7."}},
	{name: "funktion", values: []string{"Leitung", "Vertretung", "Azubi", "Aushilfe"}, of: 2, say: []string{"{p}: Funktion: {v}", "Funktion {p}: {v}"}, update: []string{"{p}: Funktion jetzt: {v}"}},
	{name: "pnr", values: []string{"4711%02d", "4712%02d"}, say: []string{"{p}: Personalnr.: {v}", "Personalnr. {p}: {v}"}},
	{name: "familienstand", values: []string{"ledig", "verlobt", "verheiratet", "geschieden", "verwitwet"}, say: []string{"{p}: Familienstand: {v}", "Familienstand {p}: {v}"}, update: []string{"{p}: Familienstand: {v} (neu)"}},
	{name: "geb", values: []string{"04.03.1981", "19.09.1990", "30.11.1975", "2. Februar 1988"}, say: []string{"{p}: geb.: {v}", "{p}: geboren: {v}"}},
	{name: "allergie", values: []string{"Nüsse", "Pollen", "Penicillin", "Milch"}, each: 2, of: 2, say: []string{"{p}: Allergie: {v}", "Allergie {p}: {v}"}, not: []string{"{p}: keine Allergie mehr: {v}", "{p}: Allergie {v} ausgeschlossen"}},
	{name: "sprache", values: []string{"Plattdeutsch", "Russisch", "Arabisch", "Friesisch"}, each: 2, of: 2, say: []string{"{p}: Sprache: {v}", "{p}: spricht: {v}"}},
	{name: "dosis", values: []string{"1-0-1", "1-0-0", "0-0-1", "1-1-1"}, of: 2, say: []string{"{p}: Bisoprolol: {v}", "Bisoprolol {p}: {v}"}, update: []string{"{p}: Bisoprolol: {v} (umgestellt)"}},
	{name: "parkplatz", values: []string{"P 11", "P 12", "P 21", "P 112"}, of: 2, say: []string{"{p}: Parkplatz: {v}", "Parkplatz {p}: {v}"}, update: []string{"{p}: Parkplatz: {v} (getauscht)", "Parkplatz {p}: ab August {v}"}},
	{name: "schluessel", values: []string{"Nr. 4711", "Nr. 4712", "Nr. 4713", "Nr. 4721"}, each: 2, of: 2, say: []string{"{p}: hat Schlüssel {v}", "Schlüssel {v}: bei {p}"}, not: []string{"{p}: Schlüssel {v} zurückgegeben", "{p}: Schlüssel {v} abgegeben"}},
	{name: "lohn", values: []string{"2.300 €", "2.650 €", "3.100 €"}, of: 2, say: []string{"{p}: Gehalt: {v}", "Gehalt {p}: {v}"}, update: []string{"{p}: Gehalt erhöht: {v}"}},
	{name: "nie", values: []string{"Abmahnung", "Kündigung", "Elternzeit"}, of: 2, say: []string{"{p}: {v}: nie", "{p}: hatte nie {v}"}},
	{name: "arzt", values: []string{"Dr. Ahlers", "Dr. Ehlers", "Dr. Thies"}, say: []string{"{p}: Hausarzt: {v}", "Hausarzt {p}: {v}"}, update: []string{"{p}: Hausarzt: {v} (seit Mai)"}},
	{name: "kontakt", values: []string{"Mutter", "Bruder", "Nachbarin"}, of: 2, say: []string{"{p}: Notfallkontakt: {v}", "Notfallkontakt {p}: {v}"}, update: []string{"{p}: Notfallkontakt geändert auf {v}"}},
}}

// household also describes people without a name, in two languages at once.
var household = set{name: "household", people: []string{
	"Mama", "Papa", "Oma Inge", "Oma Else", "Opa Willi", "Onkel Bert", "Tante Ruth", "my brother Finn", "my sister Fine", "Frau Kern", "Frau Kerner", "Mr Doyle", "Tim", "Timo", "Zoe",
	"the cleaner", "our landlord", "Cousine Lara", "Nachbar Uwe", "Aunt Peggy", "Lisa", "Lena", "Herr Popp", "Mrs Doyle", "Opa Karl", "Kevin", "Tante Ursel", "Emre", "the babysitter", "Onkel Heinz",
}, join: "%s, und %s", attrs: []attribute{
	{name: "lives", values: []string{"Mainz", "Bonn", "Derby", "Wien", "York", "Gera"}, say: []string{"{p} lives in {v}", "{p} wohnt in {v}", "{p}'s place is in {v}"}, update: []string{"{p} wohnt jetzt in {v}", "{p} moved to {v}"}},
	{name: "phone", values: []string{"0611 22%03d", "0611 23%03d", "+44 113 55%03d"}, say: []string{"Telefon {p}: {v}", "{p}'s phone: {v}", "{p} ist unter {v} erreichbar"}, update: []string{"Neue Telefonnummer {p}: {v}", "{p}'s phone: {v} now", "{p} has a new phone number: {v}"}},
	{name: "day", values: []string{"Monday", "Tuesday", "Thursday", "Saturday"}, say: []string{"{p} comes round on {v}", "{p} visits us every {v}"}, update: []string{"From now on {p} visits us every {v}"}},
	{name: "eats", values: []string{"fish", "Pilze", "Paprika", "nuts", "Kümmel"}, each: 2, say: []string{"{p} doesn't eat {v}", "{p} isst keine {v}"}, not: []string{"{p} eats {v} again", "{p} isst wieder {v}"}},
	{name: "likes", values: []string{"Rummikub", "Krimis", "Schlager", "crosswords", "gin"}, each: 2, say: []string{"{p} loves {v}", "{p} liebt {v}"}, not: []string{"{p} is fed up with {v}", "{p} hat genug von {v}", "{p} liebt {v} nicht mehr"}},
	{name: "bday", values: []string{"5.4.", "16.8.", "1.12."}, say: []string{"{p}: Geburtstag {v}", "Geburtstag von {p} ist {v}"}},
	{name: "shoe", values: []string{"37", "39", "42", "44"}, of: 2, say: []string{"{p}: shoe size {v}", "{p} hat Schuhgröße {v}"}},
	{name: "pill", values: []string{"25 mg", "50 mg", "75 mg"}, of: 2, say: []string{"{p} takes {v} of thyroxine", "{p} nimmt {v} Thyroxin"}, update: []string{"{p} nimmt jetzt {v} Thyroxin", "{p} is down to {v} of thyroxine", "{p} takes {v} of thyroxine from now on"}},
	{name: "doctor", values: []string{"Dr. Adler", "Dr. Otto", "Dr. Singh"}, say: []string{"{p}'s family doctor is {v}", "Hausarzt von {p} ist {v}"}, update: []string{"{p}'s family doctor is {v} now", "Hausarzt von {p} ist jetzt {v}"}},
	{name: "car", values: []string{"a Kia", "a Mini", "a Seat", "a Saab"}, of: 2, say: []string{"{p} drives {v}", "{p}'s car is {v}"}, update: []string{"{p} traded in the car and drives {v}", "{p} drives {v} now"}},
	{name: "second", values: []string{"a Vespa", "a camper", "a trailer"}, of: 3, say: []string{"{p} also has {v}", "{p} hat auch noch {v}"}},
	{name: "works", values: []string{"Globus", "Aldi", "the vicarage", "die Post", "the zoo"}, say: []string{"{p} works for {v}", "{p} arbeitet für {v}"}, update: []string{"{p} quit and works for {v}", "{p} arbeitet jetzt für {v}"}},
	{name: "pocket", values: []string{"3 €", "5 €", "8 €", "10 €"}, of: 2, say: []string{"{p} gets {v} every week", "{p} bekommt {v} pro Woche"}, update: []string{"{p} bekommt jetzt {v} pro Woche", "{p} gets {v} every week from September"}},
	{name: "instr", values: []string{"Geige", "Blockflöte", "drums", "ukulele"}, each: 2, of: 2, say: []string{"{p} plays {v}", "{p} spielt {v}"}, not: []string{"{p} hat {v} aufgegeben", "{p} quit playing {v}", "{p} spielt nicht mehr {v}"}},
	{name: "godchild", values: []string{"Mila", "Milan", "Jette", "Jan"}, of: 2, say: []string{"{p} is godparent to {v}", "{p} ist Pate von {v}"}},
	{name: "seat", values: []string{"the window", "the stove", "the door"}, of: 2, say: []string{"{p} always sits by {v}"}, update: []string{"{p} sits by {v} now"}},
	{name: "never", values: []string{"divorced", "in hospital", "abroad"}, of: 2, say: []string{"{p} was never {v}", "{p} has never been {v}"}},
	{name: "travel", values: []string{"Rügen 2021", "Rügen 2023", "Cornwall 2022"}, each: 2, of: 2, say: []string{"{p} came along to {v}", "{p} war dabei: {v}"}},
	{name: "wifi", values: []string{"tulpe-%02d", "nelke-%02d"}, of: 2, say: []string{"{p}'s Wi-Fi password is {v}", "WLAN-Passwort von {p}: {v}"}, update: []string{"{p}'s Wi-Fi password was changed to {v}", "WLAN-Passwort von {p} ist jetzt {v}"}},
}}
