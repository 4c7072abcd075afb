package main

// patients are married, or have nearly the same name.
var patients = []string{
	"Fr. Albers", "Hr. Albers", "Fr. Albrecht", "Hr. Brandt", "Hr. Brand", "Fr. Celik", "Hr. Celik", "Fr. Dahm", "Opa Heinz", "Oma Heidi", "Fr. Ehlers", "Fr. Ehlert", "Hr. Fuchs", "Fr. Gruber",
	"Hr. Huber", "Fr. Huber", "Tante Inge", "Hr. Jansen", "Hr. Janssen", "Fr. Kowalski", "Hr. Lorenz", "Fr. Lorenz", "Hr. Nowak", "Fr. Özdemir", "Hr. Petersen", "Fr. Peters", "Hr. Quast", "Fr. Sauer", "Hr. Thiele", "Fr. Ullmann",
}

// practice is written in telegram style, with abbreviations and several corrections, by a writer who
// also writes about themselves.
var practice = set{
	name: "practice", people: patients, join: "%s; %s",
	attrs: []attribute{
		{name: "meto", values: []string{"23,75 mg", "47,5 mg", "95 mg", "190 mg"}, again: true, say: []string{"{p} Metoprolol {v} morgens", "{p} nimmt morgens {v} Metoprolol", "Metoprolol {p}: {v} früh"},
			update: []string{"{p} Metoprolol ab sofort {v} statt {o}", "Metoprolol {p} umgestellt auf {v}", "{p}: Metoprolol geändert, jetzt {v} morgens", "Metoprolol {p} nicht mehr {o}, sondern {v}"}},
		{name: "cort", values: []string{"3 mg", "30 mg", "2,5 mg", "25 mg"}, of: 2, say: []string{"{p} Prednisolon {v} abends", "{p} nimmt abends {v} Prednisolon"}, update: []string{"Prednisolon {p} ab heute {v}", "{p} Prednisolon: Korrektur, es sind {v} abends, nicht {o}"}},
		{name: "insulin", values: []string{"12 IE", "14 IE", "21 IE", "24 IE"}, of: 2, say: []string{"{p} spritzt {v} Lantus zur Nacht", "Lantus {p} {v} zur Nacht"}, update: []string{"Lantus {p} seit Montag {v} zur Nacht", "{p} spritzt nun {v} Lantus zur Nacht statt {o}"}},
		{name: "besuch", values: []string{"7:30", "17:30", "7:15", "19:30", "8:00"}, again: true, say: []string{"Pflegedienst kommt zu {p} um {v} Uhr", "{p}: Pflegedienst {v} Uhr"},
			update: []string{"Pflegedienst bei {p} verschoben auf {v} Uhr", "Pflegedienst kommt zu {p} jetzt erst um {v} Uhr", "{p}: Pflegedienst doch {v} Uhr, nicht {o} Uhr"}},
		{name: "station", values: []string{"3A", "3B", "13A", "13B", "5"}, of: 2, again: true, say: []string{"{p} liegt auf Station {v}", "{p} auf Station {v}"}, update: []string{"{p} von Station {o} auf Station {v} verlegt", "{p} liegt jetzt auf Station {v}", "{p} wurde auf Station {v} verlegt"}},
		{name: "zimmer", values: []string{"112", "121", "12", "211"}, of: 3, say: []string{"{p} Zimmer {v}", "{p} liegt in Zimmer {v}"}, update: []string{"{p} neues Zimmer: {v}", "{p} ist in Zimmer {v} umgezogen"}},
		{name: "allergie", values: []string{"Penicillin", "Latex", "Jod", "Ibuprofen", "Pflaster"}, each: 2, say: []string{"{p} allergisch gegen {v}", "Allergie {p}: {v}", "{p} verträgt {v} nicht"}, not: []string{"{p} ist doch nicht allergisch gegen {v}", "Allergie gegen {v} bei {p} hat sich nicht bestätigt"}},
		{name: "versnr", values: []string{"V4711%02d", "V4712%02d", "W4711%02d"}, say: []string{"Versichertennr. {p}: {v}", "{p} hat die Versichertennummer {v}"}, update: []string{"Versichertennr. {p} war falsch, richtig ist {v}"}},
		{name: "kasse", values: []string{"AOK", "TK", "Barmer", "DAK", "IKK"}, say: []string{"Krankenkasse {p}: {v}", "{p} ist bei der {v} versichert"}, update: []string{"{p} hat von der {o} zur {v} gewechselt", "{p} seit 1.4. bei der {v} versichert", "{p} jetzt {v} statt {o}"}},
		{name: "hausarzt", values: []string{"Dr. Meier", "Dr. Meyer", "Dr. Maier", "Dr. Roth"}, say: []string{"Hausarzt {p}: {v}", "{p} hat {v} als Hausarzt"}, update: []string{"{p} hat den Hausarzt gewechselt, jetzt {v}", "Hausarzt {p} nicht mehr {o}, sondern {v}"}},
		{name: "kardio", values: []string{"Dr. Meier", "Dr. Meyer", "Dr. Sommer"}, of: 2, say: []string{"Kardiologe {p}: {v}", "{p} geht zu {v} in die Kardiologie"}},
		{name: "pg", values: []string{"1", "2", "3", "4"}, say: []string{"Pflegegrad {p}: {v}", "{p} hat Pflegegrad {v}"}, update: []string{"{p} seit März Pflegegrad {v}", "Pflegegrad {p} von {o} auf {v} geändert", "{p} wurde in Pflegegrad {v} eingestuft"}},
		{name: "tochter", values: phones, of: 2, say: []string{"Tel. Tochter von {p}: {v}", "Tochter von {p} erreichbar unter {v}"}, update: []string{"Tochter von {p} hat neue Nummer: {v}"}},
		{name: "sohn", values: phones, of: 2, say: []string{"Tel. Sohn von {p}: {v}", "Sohn von {p} erreichbar unter {v}"}},
		{name: "box", values: pins, say: []string{"Schlüsselbox {p}: {v}", "Code der Schlüsselbox bei {p} ist {v}"}, update: []string{"Schlüsselbox {p} neuer Code {v}", "Code der Schlüsselbox bei {p} jetzt {v}, {o} gilt nicht mehr"}},
		{name: "gewicht", values: []string{"62,4 kg", "64,2 kg", "82,4 kg", "84,2 kg"}, of: 2, say: []string{"Gewicht {p} {v}", "{p} wiegt {v}"}, update: []string{"{p} wiegt inzwischen {v}", "Gewicht {p} aktuell {v}"}},
		{name: "kost", values: []string{"Schonkost", "Vollkost", "Breikost", "Diabeteskost"}, of: 2, say: []string{"{p} bekommt {v}", "Kostform {p}: {v}"}, update: []string{"{p} bekommt keine {o} mehr, sondern {v}", "{p} umgestellt von {o} auf {v}"}},
		{name: "hilfe", values: []string{"Rollator", "Gehstock", "Rollstuhl", "Badewannenlift"}, each: 2, of: 2, say: []string{"{p} benutzt {v}", "Hilfsmittel {p}: {v}"}, not: []string{"{p} benutzt {v} nicht mehr", "{p} braucht {v} nicht mehr"}},
		{name: "impfung", values: []string{"Grippe 10/2023", "Grippe 10/2024", "Tetanus 3/2019"}, each: 2, of: 3, say: []string{"Impfung {p}: {v}", "{p} geimpft: {v}"}},
		{name: "nie", values: []string{"Alkohol", "Kaffee", "Milch"}, of: 3, say: []string{"{p} trinkt nie {v}", "{p} trinkt niemals {v}"}},
		{name: "ramipril", values: []string{"Ramipril", "Torasemid", "Marcumar", "Pantoprazol"}, each: 2, say: []string{"{p} nimmt {v}", "{p} bekommt {v}", "Medikation {p}: {v}"}, not: []string{"{p} nimmt kein {v} mehr", "{v} bei {p} abgesetzt", "{p} bekommt {v} nicht mehr"}},
		{name: "termin", values: []string{"3.4. um 7:30 Uhr", "13.4. um 7:30 Uhr", "3.4. um 17:30 Uhr", "4.3. um 10 Uhr"}, of: 2, again: true, say: []string{"Kontrolltermin {p} am {v}", "{p} hat Kontrolltermin am {v}"}, update: []string{"Kontrolltermin {p} verlegt auf {v}", "Kontrolltermin {p} nochmals verschoben, nun am {v}", "Kontrolltermin {p} nicht am {o}, sondern am {v}"}},
	},
	self: []attribute{
		{name: "dienst", values: []string{"Frühdienst", "Spätdienst", "Nachtdienst"}, say: []string{"Ich habe montags {v}", "Montags mache ich {v}"}, update: []string{"Ich habe montags jetzt {v}"}},
		{name: "spind", values: pins, say: []string{"Mein Spindcode ist {v}"}, update: []string{"Mein Spindcode ist nun {v}"}},
		{name: "auto", values: []string{"B-AB 4711", "B-AB 4712"}, say: []string{"Mein Dienstwagen hat das Kennzeichen {v}", "Kennzeichen meines Dienstwagens: {v}"}},
		{name: "auto2", values: []string{"B-AB 4713", "B-AB 4712"}, say: []string{"Mein Privatwagen hat das Kennzeichen {v}"}},
		{name: "mag", values: []string{"Doppelschichten", "Teambesprechungen", "Wochenenddienste"}, each: 2, say: []string{"Ich mag {v}", "Ich mag {v} sehr"}, not: []string{"Ich mag {v} nicht mehr"}},
	},
}
