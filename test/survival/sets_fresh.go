package main

// These sets were written after the dreamer, and each was run once before any fix.

var peopleFresh = []string{
	"Alva", "Bjarne", "Cosima", "Dorian", "Esther", "Florin", "Gunda", "Henrik", "Ilse", "Jasper", "Katja", "Lorenz", "Malte", "Noemi", "Ottilie",
	"Pavel", "Raquel", "Selma", "Timur", "Ursula", "Viktor", "Wilma", "Xenia", "Yusuf", "Zora", "Anton", "Birte", "Cyrus", "Derya", "Elmar",
}

var freshEnglish = set{
	name: "fresh english", people: peopleFresh, join: "%s, and %s",
	attrs: []attribute{
		{name: "town", values: []string{"Leeds", "Exeter", "Dundee", "Galway", "Antwerp", "Bilbao", "Nantes"},
			say: []string{"{p} rents a flat in {v}", "{p} lives in {v}", "{p}'s flat is in {v}"}, update: []string{"{p} packed up and moved to {v}", "{p} is living in {v} these days", "{p} settled in {v} last month"}},
		{name: "sister", values: []string{"Leeds", "Exeter", "Dundee"}, of: 3, say: []string{"{p}'s sister lives in {v}"}},
		{name: "car", values: []string{"Fiat", "Saab", "Mazda", "Skoda", "Tesla"}, say: []string{"{p} drives a {v}", "{p}'s car is a {v}"}, update: []string{"{p} traded the old car in for a {v}", "{p} now drives a {v}"}},
		{name: "plate", values: []string{"KX %02d ABC", "LM %02d ABD"}, say: []string{"{p}'s number plate reads {v}", "The plate of {p}'s car is {v}"}},
		{name: "instrument", values: []string{"cello", "flute", "oboe", "harp"}, each: 2, of: 2, say: []string{"{p} plays the {v}", "{p} is a {v} player"}, not: []string{"{p} no longer plays the {v}", "{p} gave up the {v}"}},
		{name: "shift", values: []string{"early shift", "late shift", "night shift"}, say: []string{"{p} is on the {v}", "{p} works the {v}"}, update: []string{"{p} was switched to the {v}"}},
		{name: "insurer", values: []string{"Aviva", "Zurich Re", "Allianz", "Generali"}, say: []string{"{p} is insured with {v}", "{p}'s insurance company is {v}"}, update: []string{"{p} cancelled the old policy and is with {v} now"}},
		{name: "dose", values: []string{"20 mg", "30 mg", "40 mg", "60 mg"}, of: 2, say: []string{"{p} takes {v} of the drug a day", "{p}'s daily dose is {v}"}, update: []string{"The doctor raised {p}'s daily dose to {v}"}},
		{name: "other dose", values: []string{"20 mg", "30 mg"}, of: 3, say: []string{"{p}'s dog gets {v} of the drug a day"}},
		{name: "badge", values: pins, say: []string{"{p}'s badge number is {v}", "The number on {p}'s badge is {v}"}, update: []string{"{p} got a new badge with the number {v}"}},
		{name: "parking", values: pins, of: 2, say: []string{"{p} parks in bay {v}", "{p}'s parking bay is {v}"}},
		{name: "vet", values: []string{"Dr. Hale", "Dr. Pym", "Dr. Quist"}, of: 2, say: []string{"{p} takes the cat to {v}", "The vet of {p}'s cat is {v}"}},
		{name: "language", values: []string{"Danish", "Farsi", "Basque", "Czech"}, each: 2, say: []string{"{p} speaks {v}", "{p} is fluent in {v}"}},
		{name: "intolerance", values: []string{"gluten", "lactose", "histamine"}, of: 2, say: []string{"{p} can't tolerate {v}", "{p} does not tolerate {v}"}},
		{name: "sport", values: []string{"fencing", "rowing", "judo", "curling"}, say: []string{"{p} does {v}", "{p}'s sport is {v}"}, not: []string{"{p} has given up {v}", "{p} doesn't do {v} any more"}},
		{name: "salary", values: []string{"41,200 euros", "41,300 euros", "52,000 euros"}, of: 2, say: []string{"{p} earns {v} a year", "{p}'s salary is {v} a year"}, update: []string{"{p}'s salary went up to {v} a year"}},
		{name: "deadline", values: []string{"3 May", "4 May", "11 June"}, say: []string{"{p} has to hand in the thesis by {v}", "The deadline of {p}'s thesis is {v}"}, update: []string{"The deadline of {p}'s thesis was moved to {v}"}},
		{name: "coffee", values: []string{"espresso", "flat white", "cortado"}, say: []string{"{p}'s usual order is a {v}", "{p} usually orders a {v}"}, update: []string{"{p} has switched to ordering a {v}"}},
	},
}

var freshGerman = set{
	name: "fresh german", people: peopleFresh, join: "%s, und %s",
	attrs: []attribute{
		{name: "ort", values: []string{"Jena", "Passau", "Chemnitz", "Linz", "Bern", "Trier"},
			say: []string{"{p} hat ein Zimmer in {v}", "{p} wohnt in {v}", "{p} ist in {v} zu Hause"}, update: []string{"{p} ist kürzlich nach {v} umgezogen", "{p} wohnt mittlerweile in {v}", "{p} hat jetzt in {v} ein Haus"}},
		{name: "bruder", values: []string{"Jena", "Passau"}, of: 3, say: []string{"Der Bruder von {p} wohnt in {v}"}},
		{name: "auto", values: []string{"Golf", "Volvo", "Polo", "Dacia"}, say: []string{"{p} fährt einen {v}", "Das Auto von {p} ist ein {v}"}, update: []string{"{p} hat sich stattdessen einen {v} gekauft", "{p} fährt inzwischen einen {v}"}},
		{name: "kennzeichen", values: []string{"HH-AB %02d", "B-XY %02d"}, say: []string{"Das Kennzeichen von {p} ist {v}", "{p}s Kennzeichen: {v}"}},
		{name: "instrument", values: []string{"Cello", "Oboe", "Harfe", "Orgel"}, each: 2, of: 2, say: []string{"{p} spielt {v}", "{p} kann {v} spielen"}, not: []string{"{p} spielt nicht mehr {v}", "{p} hat mit {v} aufgehört"}},
		{name: "schicht", values: []string{"Frühschicht", "Spätschicht", "Nachtschicht"}, say: []string{"{p} arbeitet in der {v}", "{p} hat {v}"}, update: []string{"{p} ist in die {v} gewechselt"}},
		{name: "kasse", values: []string{"Barmer", "DAK", "Techniker"}, say: []string{"{p} ist bei der {v} versichert", "{p}s Krankenkasse ist die {v}"}, update: []string{"{p} hat die Krankenkasse gewechselt und ist nun bei der {v}"}},
		{name: "dosis", values: []string{"20 mg", "30 mg", "40 mg"}, say: []string{"{p} nimmt täglich {v} davon", "{p}s Tagesdosis beträgt {v}"}, update: []string{"{p}s Tagesdosis wurde auf {v} erhöht"}},
		{name: "ausweis", values: pins, say: []string{"{p}s Ausweisnummer ist {v}", "Der Ausweis von {p} hat die Nummer {v}"}, update: []string{"{p} hat einen neuen Ausweis mit der Nummer {v}"}},
		{name: "stellplatz", values: pins, of: 2, say: []string{"{p} parkt auf Stellplatz {v}", "{p}s Stellplatz ist {v}"}},
		{name: "tierarzt", values: []string{"Dr. Ahlers", "Dr. Brand", "Dr. Cordes"}, say: []string{"{p} geht mit dem Hund zu {v}", "Der Tierarzt von {p} ist {v}"}},
		{name: "sprache", values: []string{"Dänisch", "Persisch", "Baskisch"}, each: 2, say: []string{"{p} spricht {v}", "{p} kann gut {v}"}},
		{name: "unverträglich", values: []string{"Fruktose", "Laktose", "Histamin"}, of: 2, say: []string{"{p} verträgt {v} nicht", "{p} verträgt keine {v}"}},
		{name: "sport", values: []string{"Fechten", "Rudern", "Judo", "Curling"}, say: []string{"{p} macht {v}", "{p}s Sport ist {v}"}, not: []string{"{p} hat {v} aufgegeben", "{p} macht kein {v} mehr"}},
		{name: "gehalt", values: []string{"3.410 Euro", "3.420 Euro", "4.000 Euro"}, of: 2, say: []string{"{p} verdient {v} im Monat", "{p}s Gehalt liegt bei {v} im Monat"}, update: []string{"{p}s Gehalt ist auf {v} im Monat gestiegen"}},
		{name: "abgabe", values: []string{"3. Mai", "4. Mai", "11. Juni"}, say: []string{"{p} muss die Arbeit am {v} abgeben", "Die Abgabe von {p}s Arbeit ist am {v}"}, update: []string{"Die Abgabe von {p}s Arbeit wurde auf den {v} verschoben"}},
		{name: "kaffee", values: []string{"Espresso", "Cappuccino", "Mokka"}, say: []string{"{p} bestellt meistens einen {v}", "{p} nimmt gewöhnlich einen {v}"}, update: []string{"{p} bestellt neuerdings einen {v}"}},
		// Only an article says who replaces whom.
		{name: "vertritt", values: []string{"Pförtner", "Kassenwart", "Wirt", "Hausmeister"}, each: 2, of: 2, say: []string{"Den {v} vertritt {p}"}},
		{name: "hilft", values: []string{"beim Sommerfest", "beim Flohmarkt", "beim Umzug", "beim Basar"}, each: 2, of: 2, say: []string{"{p} hilft {v} (abgesagt)", "{p} hilft {v}: abgesagt"}, not: []string{"{p} hilft {v}"}},
		{name: "vertreten", values: []string{"Pförtner", "Kassenwart", "Wirt", "Hausmeister"}, each: 2, of: 2, say: []string{"Der {v} vertritt {p}"}},
	},
}

var freshFrench = set{
	name: "fresh french", people: peopleFresh, join: "%s, et %s",
	attrs: []attribute{
		{name: "ville", values: []string{"Lyon", "Lille", "Nantes", "Brest", "Namur"},
			say: []string{"{p} habite à {v}", "{p} vit à {v}"}, update: []string{"{p} a déménagé à {v}", "{p} habite maintenant à {v}", "{p} s'est installé à {v} depuis peu"}},
		{name: "frère", values: []string{"Lyon", "Lille"}, of: 3, say: []string{"Le frère de {p} habite à {v}"}},
		{name: "métier", values: []string{"boulanger", "dentiste", "pilote", "libraire"}, say: []string{"{p} travaille comme {v}", "{p} est {v} de métier"}, update: []string{"{p} a changé de métier et travaille maintenant comme {v}"}},
		{name: "téléphone", values: phones, say: []string{"Le numéro de téléphone de {p} est le {v}", "Téléphone de {p} : {v}"}, update: []string{"Le nouveau numéro de téléphone de {p} est le {v}"}},
		{name: "garage", values: pins, say: []string{"Le code du garage de {p} est {v}", "Code du garage de {p} : {v}"}, update: []string{"Le code du garage de {p} a été changé, c'est {v}"}},
		{name: "cave", values: pins, say: []string{"Le code de la cave de {p} est {v}"}},
		{name: "anniversaire", values: []string{"3 mai", "4 mai", "11 juin"}, say: []string{"L'anniversaire de {p} est le {v}", "{p} fête son anniversaire le {v}"}},
		{name: "aliments", values: []string{"les huîtres", "le fromage", "les épinards", "le chocolat"}, each: 2, say: []string{"{p} aime {v}", "{p} aime bien {v}"}, not: []string{"{p} n'aime plus {v}", "{p} ne mange plus {v}"}},
		{name: "allergie", values: []string{"aux noix", "au pollen", "au latex"}, of: 2, say: []string{"{p} est allergique {v}", "{p} a une allergie {v}"}},
		{name: "interdit", values: []string{"alcool", "café", "porc"}, of: 2, say: []string{"{p} ne boit jamais de {v}", "{p} ne prend pas de {v}"}},
		{name: "langue", values: []string{"danois", "persan", "basque"}, each: 2, say: []string{"{p} parle {v}", "{p} parle couramment {v}"}},
		{name: "voiture", values: []string{"Clio", "Golf", "Fiat", "Volvo"}, say: []string{"{p} conduit une {v}", "La voiture de {p} est une {v}"}, update: []string{"{p} conduit désormais une {v}"}},
		{name: "loyer", values: []string{"870 euros", "920 euros", "1140 euros"}, of: 2, say: []string{"{p} paie {v} de loyer", "Le loyer de {p} est de {v}"}, update: []string{"Le loyer de {p} est passé à {v}"}},
		{name: "badge", values: pins, say: []string{"Le badge de {p} porte le numéro {v}"}},
		{name: "chat", values: []string{"Minou", "Félix", "Moustache"}, say: []string{"Le chat de {p} s'appelle {v}", "{p} a un chat qui s'appelle {v}"}},
		{name: "casier", values: pins, say: []string{"{p} a le casier {v}", "Le casier de {p} est le {v}"}},
		{name: "pointure", values: []string{"38", "39", "43"}, of: 2, say: []string{"{p} chausse du {v}"}},
	},
}
