package main

// A second round of sets, likewise.

var freshEnglish2 = set{
	name: "second english", people: peopleFresh, join: "%s. %s",
	attrs: []attribute{
		{name: "village", values: []string{"Ambleside", "Keswick", "Portree", "Whitby", "Ludlow"}, say: []string{"{p} is based in {v}", "{p} lives out in {v}", "{p}'s house is in {v}"}, update: []string{"{p} sold the house and moved to {v}", "{p} has since relocated to {v}", "As of this spring {p} lives in {v}"}},
		{name: "aunt", values: []string{"Ambleside", "Keswick"}, of: 3, say: []string{"An aunt of {p} lives in {v}"}},
		{name: "boss", values: []string{"Mr. Dunn", "Mr. Dunne", "Ms. Okafor"}, say: []string{"{p}'s boss is {v}", "{p} reports to {v}"}, update: []string{"{p} reports to {v} now", "{p} got a new boss, {v}"}},
		{name: "course", values: []string{"botany", "statics", "Latin", "optics"}, say: []string{"{p} studies {v}", "{p} is enrolled in {v}"}, update: []string{"{p} dropped out and now studies {v}"}},
		{name: "account", values: []string{"DE%02d 4711", "DE%02d 4712"}, say: []string{"{p}'s account number is {v}", "{p} banks under {v}"}},
		{name: "door", values: pins, say: []string{"{p}'s front door opens with {v}", "The front door code at {p}'s is {v}"}, update: []string{"{p} reset the front door code to {v}"}},
		{name: "shed", values: pins, of: 2, say: []string{"The shed code at {p}'s is {v}"}},
		{name: "bus", values: []string{"line 12", "line 21", "line 7"}, say: []string{"{p} commutes on {v}", "{p} takes {v} to work"}, update: []string{"{p} takes {v} to work these days"}},
		{name: "book club", values: []string{"Tuesdays", "Thursdays", "Sundays"}, say: []string{"{p}'s book club meets on {v}", "{p} has book club on {v}"}, update: []string{"{p}'s book club was moved to {v}"}},
		{name: "shoe", values: []string{"38", "39", "42", "43"}, say: []string{"{p} wears shoe size {v}", "{p}'s shoe size is {v}"}},
		{name: "hates", values: []string{"coriander", "olives", "beetroot"}, each: 2, say: []string{"{p} can't stand {v}", "{p} hates {v}"}},
		{name: "loves", values: []string{"hiking", "chess", "crosswords", "karaoke"}, each: 2, say: []string{"{p} loves {v}", "{p} is fond of {v}"}, not: []string{"{p} has lost interest in {v}", "{p} doesn't care for {v} any longer"}},
		{name: "team", values: []string{"the red team", "the blue team", "the green team"}, of: 2, say: []string{"{p} belongs to {v}", "{p} is on {v}"}, update: []string{"{p} was transferred to {v}"}},
		{name: "phone", values: phones, say: []string{"{p} answers the phone at {v}", "{p}'s mobile number is {v}"}, update: []string{"{p} got a new mobile number, {v}"}},
		{name: "twins", values: []string{"Ada", "Ida", "Uwe", "Ove"}, each: 2, of: 2, say: []string{"{p} has a child called {v}"}},
		{name: "never", values: []string{"whisky", "oysters", "snails"}, of: 2, say: []string{"{p} has never tried {v}", "{p} never tried {v}"}},
		{name: "blood", values: []string{"A positive", "A negative", "B positive"}, of: 2, say: []string{"{p}'s blood type is {v}"}},
		{name: "pension", values: []string{"1,210 pounds", "1,220 pounds"}, of: 2, say: []string{"{p} draws {v} of pension", "{p}'s pension is {v}"}, update: []string{"{p}'s pension was raised to {v}"}},
	},
}

var freshGerman2 = set{
	name: "second german", people: peopleFresh, join: "%s. %s",
	attrs: []attribute{
		{name: "dorf", values: []string{"Ahrbeck", "Bibertal", "Celle", "Dachau", "Erding"}, say: []string{"{p} lebt in {v}", "{p} hat das Haus in {v}", "{p} wohnt draußen in {v}"}, update: []string{"{p} hat das Haus verkauft und lebt jetzt in {v}", "{p} ist nach {v} gezogen", "Seit diesem Jahr wohnt {p} in {v}"}},
		{name: "tante", values: []string{"Ahrbeck", "Celle"}, of: 3, say: []string{"Eine Tante von {p} wohnt in {v}"}},
		{name: "chefin", values: []string{"Frau Duhn", "Frau Duhne", "Herr Okafor"}, say: []string{"{p}s Vorgesetzte heißt {v}", "{p} arbeitet unter {v}"}, update: []string{"{p} arbeitet neuerdings unter {v}"}},
		{name: "fach", values: []string{"Botanik", "Statik", "Latein", "Optik"}, say: []string{"{p} studiert {v}", "{p} ist für {v} eingeschrieben"}, update: []string{"{p} hat gewechselt und studiert jetzt {v}"}},
		{name: "konto", values: []string{"DE%02d 4711", "DE%02d 4712"}, say: []string{"{p}s Kontonummer ist {v}", "{p} hat das Konto {v}"}},
		{name: "haustür", values: pins, say: []string{"{p}s Haustür geht mit {v} auf", "Der Haustürcode bei {p} ist {v}"}, update: []string{"{p} hat den Haustürcode auf {v} geändert"}},
		{name: "schuppen", values: pins, of: 2, say: []string{"Der Code vom Schuppen bei {p} ist {v}"}},
		{name: "bus", values: []string{"Linie 12", "Linie 21", "Linie 7"}, say: []string{"{p} fährt mit {v} zur Arbeit", "{p} nimmt {v} zur Arbeit"}, update: []string{"{p} nimmt inzwischen {v} zur Arbeit"}},
		{name: "lesekreis", values: []string{"dienstags", "donnerstags", "sonntags"}, say: []string{"{p}s Lesekreis trifft sich {v}", "{p} hat {v} Lesekreis"}, update: []string{"{p}s Lesekreis wurde auf {v} verlegt"}},
		{name: "schuh", values: []string{"38", "39", "42", "43"}, say: []string{"{p} trägt Schuhgröße {v}", "{p}s Schuhgröße ist {v}"}},
		{name: "hasst", values: []string{"Koriander", "Oliven", "Rosinen"}, each: 2, say: []string{"{p} mag kein {v}", "{p} hasst {v}"}},
		{name: "liebt", values: []string{"Wandern", "Schach", "Karaoke", "Skat"}, each: 2, say: []string{"{p} liebt {v}", "{p} mag {v}"}, not: []string{"{p} mag {v} nicht mehr", "{p} kann mit {v} nichts mehr anfangen"}},
		{name: "team", values: []string{"Team Rot", "Team Blau", "Team Grün"}, of: 2, say: []string{"{p} gehört zu {v}", "{p} ist in {v}"}, update: []string{"{p} wurde zu {v} versetzt"}},
		{name: "handy", values: phones, say: []string{"{p} ist unter {v} zu erreichen", "{p}s Handynummer ist {v}"}, update: []string{"{p} hat eine neue Handynummer, {v}"}},
		{name: "kind", values: []string{"Ada", "Ida", "Uwe", "Ove"}, each: 2, of: 2, say: []string{"{p} hat ein Kind, das {v} heißt"}},
		{name: "nie", values: []string{"Whisky", "Austern", "Schnecken"}, of: 2, say: []string{"{p} hat noch nie {v} probiert"}},
		{name: "blut", values: []string{"A positiv", "A negativ", "B positiv"}, of: 2, say: []string{"{p}s Blutgruppe ist {v}"}},
		{name: "rente", values: []string{"1.210 Euro", "1.220 Euro"}, of: 2, say: []string{"{p} bekommt {v} Rente", "{p}s Rente beträgt {v}"}, update: []string{"{p}s Rente wurde auf {v} erhöht"}},
	},
}

var freshSpanish = set{
	name: "second spanish", people: peopleFresh, join: "%s. %s",
	attrs: []attribute{
		{name: "ciudad", values: []string{"Sevilla", "Bilbao", "Murcia", "Lugo", "Gijón"}, say: []string{"{p} vive en {v}", "{p} tiene su casa en {v}"}, update: []string{"{p} se ha mudado a {v}", "{p} vive ahora en {v}", "{p} se mudó a {v}"}},
		{name: "tía", values: []string{"Sevilla", "Bilbao"}, of: 3, say: []string{"La tía de {p} vive en {v}"}},
		{name: "oficio", values: []string{"panadero", "piloto", "dentista", "albañil"}, say: []string{"{p} trabaja como {v}", "{p} es {v} de profesión"}, update: []string{"{p} trabaja ahora como {v}"}},
		{name: "teléfono", values: phones, say: []string{"El teléfono de {p} es el {v}", "Teléfono de {p}: {v}"}, update: []string{"El nuevo teléfono de {p} es el {v}"}},
		{name: "garaje", values: pins, say: []string{"El código del garaje de {p} es {v}", "Código del garaje de {p}: {v}"}, update: []string{"El código del garaje de {p} cambió, ahora es {v}"}},
		{name: "sótano", values: pins, say: []string{"El código del sótano de {p} es {v}"}},
		{name: "cumple", values: []string{"el 3 de mayo", "el 4 de mayo", "el 11 de junio"}, say: []string{"{p} cumple años {v}", "El cumpleaños de {p} es {v}"}},
		{name: "gustos", values: []string{"el queso", "el pescado", "el chocolate", "el vino"}, each: 2, say: []string{"A {p} le gusta {v}", "A {p} le gusta mucho {v}"}, not: []string{"A {p} ya no le gusta {v}", "A {p} no le gusta más {v}"}},
		{name: "alergia", values: []string{"las nueces", "el polen", "el látex"}, of: 2, say: []string{"{p} tiene alergia a {v}"}},
		{name: "nunca", values: []string{"alcohol", "café", "cerveza"}, of: 2, say: []string{"{p} no bebe nunca {v}", "{p} nunca bebe {v}"}},
		{name: "idioma", values: []string{"danés", "persa", "vasco"}, each: 2, say: []string{"{p} habla {v}", "{p} habla bien {v}"}},
		{name: "coche", values: []string{"Seat", "Volvo", "Fiat", "Skoda"}, say: []string{"{p} conduce un {v}", "El coche de {p} es un {v}"}, update: []string{"{p} conduce ahora un {v}"}},
		{name: "alquiler", values: []string{"870 euros", "920 euros", "1140 euros"}, of: 2, say: []string{"{p} paga {v} de alquiler", "El alquiler de {p} es de {v}"}, update: []string{"El alquiler de {p} subió a {v}"}},
		{name: "gato", values: []string{"Misi", "Félix", "Luna"}, of: 2, say: []string{"El gato de {p} se llama {v}"}},
		{name: "taquilla", values: pins, say: []string{"{p} tiene la taquilla {v}", "La taquilla de {p} es la {v}"}},
		{name: "talla", values: []string{"38", "39", "43"}, say: []string{"{p} calza un {v}"}},
		{name: "equipo", values: []string{"Betis", "Celta", "Osasuna"}, say: []string{"{p} es del {v}", "El equipo de {p} es el {v}"}},
	},
}
