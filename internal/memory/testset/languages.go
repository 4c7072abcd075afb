package testset

import (
	"fmt"
	"time"
)

// language is what chats of one language are made of.
type language struct {
	code    string
	people  []string
	date    func(time.Time) string
	values  map[string][]string
	kinds   []kind
	fillers []string
	decoys  [][]string // turns of the one and the other
}

// kind is a sort of fact. Turns begin with who speaks, A or B; a star marks what
// answers the question.
type kind struct {
	name  string
	turns []string
	ask   string
	pairs string // did=do|…
}

var monthNames = map[string][]string{
	"de": {"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"},
	"es": {"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"},
	"fr": {"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre"},
}

func dateIn(code, format string) func(time.Time) string {
	return func(t time.Time) string { return fmt.Sprintf(format, t.Day(), monthNames[code][t.Month()-1], t.Year()) }
}

var languages = []*language{english, german, spanish, french, chinese}

var english = &language{
	code: "en", people: []string{"Maria", "Tom", "Sofia", "James", "Ruth", "Daniel", "Nina", "Oscar"},
	date: func(t time.Time) string { return t.Format("2 January 2006") },
	values: map[string][]string{
		"animal": {"parrot", "tortoise", "greyhound", "hamster", "goat", "ferret"}, "pet": {"Pixel", "Biscuit", "Juno", "Waffle", "Momo", "Ziggy"},
		"city": {"Lisbon", "Leeds", "Toronto", "Oslo", "Austin", "Kyoto"}, "thing": {"cello", "kayak", "typewriter", "telescope", "motorbike", "sewing machine"},
		"place": {"garage", "allotment", "office", "laundry room", "boathouse", "attic"}, "job": {"midwife", "surveyor", "florist", "pilot", "translator", "plumber"},
		"relative": {"grandmother", "nephew", "sister", "godson", "uncle", "aunt"}, "gift": {"telescope", "quilt", "puzzle", "teapot", "harmonica", "kite"},
		"feast": {"graduation", "christening", "housewarming", "retirement", "engagement", "anniversary"}, "topic": {"choir rehearsal", "swimming lesson", "book club"},
		"how":  {"chaotic, half of us were late", "wonderful, everyone was in tune with each other", "cancelled because of the storm", "exhausting but worth it", "shorter than planned", "full of new faces"},
		"food": {"peanuts", "shellfish", "strawberries", "gluten", "celery", "sesame"},
	},
	kinds: []kind{
		{name: "pet", turns: []string{"A*:We finally adopted a {animal}! The kids called it {pet}.", "B:Aww, how lovely, congratulations!"}, ask: "What is the name of {A}'s {animal}?"},
		{name: "move", turns: []string{"A*:Big news: I signed the lease, I'm moving to {city} at the end of the summer.", "B:Wow, that is a long way from here."}, ask: "Which city has {A} moved to, was it {city}?"},
		{name: "pronoun", turns: []string{"A:By the way, do you remember my old {thing}?", "B:Of course, the one in the hallway. What about it?", "A*:I sold it last weekend and got {n} pounds for it."}, ask: "How much money did {A} get for the {thing}?"},
		{name: "code", turns: []string{"B:How do I get into the {place}?", "A*:The code is {n}, but turn the handle twice."}, ask: "What's the door code for the {place}?"},
		{name: "job", turns: []string{"B:So what are you doing for a living these days?", "A*:I started as a {job} in March and love it so far."}, ask: "What does {A} do for a living?"},
		{name: "gift", turns: []string{"A*:I gave my {relative} a {gift} for the {feast}, there were tears of joy.", "B:You always find the right thing."}, ask: "Which present did {A}'s {relative} receive at the {feast}?"},
		{name: dated, turns: []string{"A*:The {topic} was {how}.", "B:Oh well, there is always a next time."}, ask: "How was the {topic} on {date}?"},
		{name: "when", turns: []string{"A*:Guess what, yesterday I {did}!", "B:No way, tell me everything."}, ask: "When did {A} {do}?",
			pairs: "ran my first marathon=run a marathon|broke my wrist on the stairs=break a wrist|won the chess tournament=win at chess|sank the rowing boat=sink a boat|flew a glider=fly a glider|chose the wedding rings=choose wedding rings"},
		{name: "allergy", turns: []string{"B:Anything you can't eat? I'm cooking on Sunday.", "A*:Just no {food} please, I swell up like a balloon."}, ask: "What is {A} allergic to, which food can't {A} eat?"},
	},
	fillers: []string{"How was your day?", "Pretty quiet here, just laundry and emails.", "Did you see the game last night?", "The weather is awful, it has been raining since Monday.", "I love that song.",
		"My neighbour has a {animal} too.", "I would love to see {city} one day.", "A colleague of mine is a {job}.", "That sounds great!", "Haha, exactly.", "My bus was late again, {n} people on the platform.",
		"The {place} needs a fresh coat of paint.", "I read an article about {food} allergies.", "What are your plans for the weekend?", "Talk to you soon, take care!", "I saw a {thing} at the flea market.", "My {relative} sends her regards.", "I'm so tired today."},
	decoys: [][]string{
		{"What is the name of that {animal} in the film?", "No idea, I fell asleep after ten minutes."},
		{"Which city do you like best, {city}?", "Hard to say, I have never lived there."},
		{"How much money would you ask for a {thing}?", "It depends, {n} pounds would be a start."},
		{"What's the code of the door at the {place} of your old school?", "I forgot it long ago."},
		{"What does your cousin do for a living, is he still a {job}?", "He changed, but he is happy."},
		{"Did your {relative} enjoy the {feast}?", "Yes, there was a lot of cake."},
		{"Are you going to the {topic} tomorrow?", "I think so, if I find the time."},
		{"When did your brother run a marathon?", "Years ago, I was not there."},
		{"Which food can your {relative} eat, what about {food}?", "Everything except soup."},
		{"My boss broke his wrist at the chess club.", "Poor man, get well soon."},
	},
}

var german = &language{
	code: "de", people: []string{"Anna", "Jonas", "Katrin", "Lukas", "Greta", "Felix", "Heike", "Moritz"},
	date: dateIn("de", "%d. %s %d"),
	values: map[string][]string{
		"animal": {"Papagei", "Windhund", "Hamster", "Wellensittich", "Igel", "Esel"}, "pet": {"Krümel", "Socke", "Frieda", "Bruno", "Lotte", "Pünktchen"},
		"city": {"Lübeck", "Graz", "Potsdam", "Basel", "Erfurt", "Kassel"}, "thing": {"Cello", "Klavier", "Kajak", "Teleskop", "Mofa", "Webstuhl"},
		"place": {"Keller", "Garten", "Büro", "Waschraum", "Dachboden", "Bootshaus"}, "job": {"Hebamme", "Gärtnerin", "Lotse", "Förster", "Optikerin", "Schreiner"},
		"relative": {"Großmutter", "Neffen", "Schwester", "Patenkind", "Onkel", "Tante"}, "gift": {"Fernglas", "Teppich", "Puzzle", "Teekanne", "Mundharmonika", "Drachen"},
		"feast": {"Taufe", "Einweihung", "Verlobung", "Pensionierung", "Konfirmation", "Abschlussfeier"}, "topic": {"Chorprobe", "Schwimmstunde", "Elternabend"},
		"how":  {"chaotisch, die Hälfte kam zu spät", "wunderschön, alle waren dabei", "abgesagt wegen des Sturms", "anstrengend, aber es hat sich gelohnt", "kürzer als geplant", "voller neuer Gesichter"},
		"food": {"Erdnüsse", "Muscheln", "Erdbeeren", "Sellerie", "Sesam", "Haselnüsse"},
	},
	kinds: []kind{
		{name: "pet", turns: []string{"A*:Wir haben jetzt endlich einen {animal}! Die Kinder haben ihn {pet} getauft.", "B:Ach wie schön, herzlichen Glückwunsch!"}, ask: "Wie heißt {A}s {animal}?"},
		{name: "move", turns: []string{"A*:Große Neuigkeiten: Der Mietvertrag ist unterschrieben, ich ziehe Ende des Sommers nach {city}.", "B:Oha, das ist aber weit weg."}, ask: "Ist {A} nach {city} umgezogen?"},
		{name: "pronoun", turns: []string{"A:Übrigens, erinnerst du dich an mein altes {thing}?", "B:Klar, das im Flur. Was ist damit?", "A*:Ich habe es am Wochenende verkauft und {n} Euro dafür bekommen."}, ask: "Wie viel Geld bekam {A} für das {thing}?"},
		{name: "code", turns: []string{"B:Wie komme ich in den Raum, den {place} meine ich?", "A*:Der Code ist {n}, aber den Griff zweimal drehen."}, ask: "Welchen Code hat die Tür zum {place}?"},
		{name: "job", turns: []string{"B:Was machst du eigentlich beruflich zurzeit?", "A*:Seit März arbeite ich als {job} und bin sehr zufrieden."}, ask: "Was ist {A} von Beruf, als was arbeitet {A}?"},
		{name: "gift", turns: []string{"A*:Zur {feast} habe ich für {relative} ein Geschenk besorgt: {gift}. Die Freude war riesig.", "B:Du findest immer das Richtige."}, ask: "Was hat {A} der Familie ({relative}) zur {feast} geschenkt?"},
		{name: dated, turns: []string{"A*:Die {topic} heute war {how}.", "B:Na ja, beim nächsten Mal wieder."}, ask: "Wie war die {topic} am {date}?"},
		{name: "when", turns: []string{"A*:Stell dir vor, gestern {did}!", "B:Nicht wahr, erzähl mir alles."}, ask: "Wann {do}?",
			pairs: "bin ich meinen ersten Marathon gelaufen=lief {A} den Marathon|habe ich mir das Handgelenk gebrochen=brach sich {A} das Handgelenk|habe ich das Schachturnier gewonnen=gewann {A} beim Schach|habe ich die Eheringe ausgesucht=suchte {A} Eheringe aus|bin ich Segelflugzeug geflogen=flog {A} im Segelflugzeug|habe ich den Führerschein bestanden=bestand {A} den Führerschein"},
		{name: "allergy", turns: []string{"B:Gibt es etwas, das du nicht essen darfst? Ich koche am Sonntag.", "A*:Nur keine {food} bitte, da schwelle ich an wie ein Ballon."}, ask: "Was darf {A} nicht essen?"},
	},
	fillers: []string{"Wie war dein Tag?", "Hier ist alles ruhig, nur Wäsche und Mails.", "Hast du gestern das Spiel gesehen?", "Das Wetter ist furchtbar, es regnet seit Montag.", "Das Lied mag ich sehr.",
		"Meine Nachbarin hat auch einen {animal}.", "{city} würde ich gern einmal sehen.", "Das klingt toll!", "Haha, genau.", "Der Bus war wieder zu spät, {n} Leute am Bahnsteig.",
		"Der {place} müsste mal gestrichen werden.", "Ich habe einen Artikel über {food} gelesen.", "Was machst du am Wochenende?", "Bis bald, pass auf dich auf!", "Auf dem Flohmarkt stand ein {thing}.", "Ich bin so müde heute."},
	decoys: [][]string{
		{"Wie heißt noch der {animal} in dem Film?", "Keine Ahnung, ich bin nach zehn Minuten eingeschlafen."},
		{"Welche Stadt gefällt dir besser, {city}?", "Schwer zu sagen, dort habe ich nie gewohnt."},
		{"Wie viel Geld würdest du für ein {thing} verlangen?", "Kommt darauf an, {n} Euro wären ein Anfang."},
		{"Welchen Code hatte die Tür zum {place} in der alten Schule?", "Längst vergessen."},
		{"Was ist dein Cousin von Beruf, immer noch {job}?", "Er hat gewechselt und ist froh."},
		{"Hat {relative} die {feast} gefallen?", "Ja, es gab viel Kuchen."},
		{"Gehst du morgen zur {topic}?", "Ich denke schon, wenn ich Zeit finde."},
		{"Wann lief dein Bruder den Marathon?", "Vor Jahren, ich war nicht dabei."},
		{"Darf dein Onkel alles essen, auch {food}?", "Alles außer Suppe."},
		{"Mein Chef hat sich beim Schach das Handgelenk gebrochen.", "Der Arme, gute Besserung."},
	},
}

var spanish = &language{
	code: "es", people: []string{"Lucía", "Pablo", "Carmen", "Diego", "Elena", "Javier", "Rocío", "Andrés"},
	date: dateIn("es", "%d de %s de %d"),
	values: map[string][]string{
		"animal": {"loro", "galgo", "hámster", "conejo", "burro", "canario"}, "pet": {"Canela", "Trufa", "Nube", "Chispa", "Coco", "Lola"},
		"city": {"Sevilla", "Bilbao", "Montevideo", "Quito", "Granada", "Oporto"}, "thing": {"piano", "telescopio", "kayak", "violín", "telar", "proyector"},
		"place": {"garaje", "sótano", "despacho", "lavadero", "desván", "jardín"}, "job": {"comadrona", "florista", "piloto", "traductora", "fontanero", "carpintera"},
		"relative": {"abuela", "sobrino", "hermana", "ahijado", "tío", "cuñada"}, "gift": {"cometa", "alfombra", "rompecabezas", "tetera", "armónica", "mochila"},
		"feast": {"graduación", "comunión", "jubilación", "boda", "mudanza", "bautizo"}, "topic": {"ensayo del coro", "clase de natación", "club de lectura"},
		"how":  {"un caos, la mitad llegó tarde", "precioso, vinieron todos", "cancelado por la tormenta", "agotador pero valió la pena", "más corto de lo previsto", "lleno de caras nuevas"},
		"food": {"cacahuetes", "marisco", "fresas", "apio", "sésamo", "almendras"},
	},
	kinds: []kind{
		{name: "pet", turns: []string{"A*:¡Por fin adoptamos un {animal}! Los niños le pusieron {pet}.", "B:¡Qué bonito, felicidades!"}, ask: "¿Cómo se llama el {animal} de {A}?"},
		{name: "move", turns: []string{"A*:Gran noticia: firmé el contrato, me mudo a {city} a finales de verano.", "B:Vaya, eso queda muy lejos."}, ask: "¿Se mudó {A} a {city}?"},
		{name: "pronoun", turns: []string{"A:Por cierto, ¿te acuerdas de mi viejo {thing}?", "B:Claro, el del pasillo. ¿Qué pasa?", "A*:Lo vendí el fin de semana pasado por {n} euros."}, ask: "¿Por cuánto dinero vendió {A} el {thing}?"},
		{name: "code", turns: []string{"B:¿Cómo entro en el {place}?", "A*:El código es {n}, pero gira la manilla dos veces."}, ask: "¿Cuál es el código de la puerta del {place}?"},
		{name: "job", turns: []string{"B:¿En qué trabajas ahora?", "A*:Empecé de {job} en marzo y de momento me encanta."}, ask: "¿En qué trabaja {A}?"},
		{name: "gift", turns: []string{"A*:Le regalé a mi familia ({relative}) una sorpresa por la {feast}: {gift}. Lloró de alegría.", "B:Siempre aciertas."}, ask: "¿Qué regalo recibió de {A} su {relative} en la {feast}?"},
		{name: dated, turns: []string{"A*:Hoy el {topic} fue {how}.", "B:Bueno, otra vez será."}, ask: "¿Cómo fue el {topic} del {date}?"},
		{name: "when", turns: []string{"A*:¡Adivina, ayer {did}!", "B:No me digas, cuéntamelo todo."}, ask: "¿Cuándo {do}?",
			pairs: "corrí mi primera maratón=corrió {A} la maratón|me rompí la muñeca en la escalera=se rompió {A} la muñeca|gané el torneo de ajedrez=ganó {A} al ajedrez|volé en planeador=voló {A} en planeador|elegimos los anillos de boda=eligió {A} los anillos|aprobé el examen de conducir=aprobó {A} el examen de conducir"},
		{name: "allergy", turns: []string{"B:¿Hay algo que no puedas comer? Cocino el domingo.", "A*:Solo nada de {food}, por favor, me hincho como un globo."}, ask: "¿Qué no puede comer {A}?"},
	},
	fillers: []string{"¿Qué tal tu día?", "Por aquí todo tranquilo, lavadora y correos.", "¿Viste el partido anoche?", "Hace un tiempo horrible, llueve desde el lunes.", "Me encanta esa canción.",
		"Mi vecina también tiene un {animal}.", "Me gustaría ver {city} algún día.", "¡Suena genial!", "Jaja, exacto.", "El autobús llegó tarde otra vez, {n} personas en el andén.",
		"El {place} necesita una mano de pintura.", "Leí un artículo sobre {food}.", "¿Qué planes tienes para el fin de semana?", "¡Hasta pronto, cuídate!", "Vi un {thing} en el mercadillo.", "Estoy muy cansada hoy."},
	decoys: [][]string{
		{"¿Cómo se llama el {animal} de esa película?", "Ni idea, me dormí a los diez minutos."},
		{"¿Qué ciudad te gusta más, {city}?", "Difícil de decir, nunca viví allí."},
		{"¿Cuánto dinero pedirías por un {thing}?", "Depende, {n} euros para empezar."},
		{"¿Cuál era el código de la puerta del {place} de tu escuela?", "Lo olvidé hace mucho."},
		{"¿En qué trabaja tu primo, sigue de {job}?", "Cambió y está contento."},
		{"¿Le gustó a tu {relative} la {feast}?", "Sí, hubo mucha tarta."},
		{"¿Vas mañana al {topic}?", "Creo que sí, si encuentro tiempo."},
		{"¿Cuándo corrió tu hermano la maratón?", "Hace años, yo no estaba."},
		{"¿Puede comer de todo tu tío, también {food}?", "Todo menos sopa."},
		{"Mi jefe se rompió la muñeca en el club de ajedrez.", "Pobre, que se mejore."},
	},
}

var french = &language{
	code: "fr", people: []string{"Camille", "Hugo", "Léa", "Antoine", "Manon", "Thomas", "Inès", "Julien"},
	date: dateIn("fr", "%d %s %d"),
	values: map[string][]string{
		"animal": {"perroquet", "lévrier", "hamster", "lapin", "âne", "furet"}, "pet": {"Caramel", "Noisette", "Filou", "Praline", "Moka", "Plume"},
		"city": {"Nantes", "Grenoble", "Lausanne", "Bruxelles", "Rennes", "Montréal"}, "thing": {"violoncelle", "télescope", "kayak", "piano", "métier à tisser", "vélomoteur"},
		"place": {"garage", "grenier", "bureau", "jardin", "cellier", "hangar"}, "job": {"sage-femme", "fleuriste", "pilote", "traductrice", "plombier", "menuisier"},
		"relative": {"grand-mère", "neveu", "sœur", "filleul", "oncle", "tante"}, "gift": {"cerf-volant", "tapis", "puzzle", "théière", "harmonica", "jumelles"},
		"feast": {"remise des diplômes", "communion", "retraite", "crémaillère", "fiançailles", "baptême"}, "topic": {"répétition de la chorale", "leçon de natation", "club de lecture"},
		"how":  {"chaos total, la moitié en retard", "magnifique, tout le monde est venu", "annulation à cause de l'orage", "épuisant mais ça valait la peine", "plus court que prévu", "plein de nouveaux visages"},
		"food": {"cacahuètes", "crustacés", "fraises", "céleri", "sésame", "noisettes grillées"},
	},
	kinds: []kind{
		{name: "pet", turns: []string{"A*:On a enfin adopté un {animal} ! Les enfants l'ont appelé {pet}.", "B:Oh que c'est mignon, félicitations !"}, ask: "Comment s'appelle le {animal} de {A} ?"},
		{name: "move", turns: []string{"A*:Grande nouvelle : j'ai signé le bail, je déménage à {city} à la fin de l'été.", "B:Waouh, c'est loin d'ici."}, ask: "Est-ce que {A} a déménagé à {city} ?"},
		{name: "pronoun", turns: []string{"A:Au fait, tu te souviens de mon vieux {thing} ?", "B:Bien sûr, celui du couloir. Et alors ?", "A*:Je l'ai vendu le week-end dernier pour {n} euros."}, ask: "Pour combien d'argent {A} a vendu le {thing} ?"},
		{name: "code", turns: []string{"B:Comment je rentre dans le {place} ?", "A*:Le code est {n}, mais tourne la poignée deux fois."}, ask: "Quel est le code de la porte du {place} ?"},
		{name: "job", turns: []string{"B:Tu fais quoi comme travail en ce moment ?", "A*:J'ai commencé comme {job} en mars et ça me plaît beaucoup."}, ask: "Quel travail fait {A} ?"},
		{name: "gift", turns: []string{"A*:Pour la fête ({feast}) j'ai offert à quelqu'un de la famille ({relative}) ceci : {gift}. Que de larmes de joie.", "B:Tu trouves toujours ce qu'il faut."}, ask: "Quel cadeau de {A} pour {relative} ({feast}) ?"},
		{name: dated, turns: []string{"A*:Aujourd'hui, {topic} : {how}.", "B:Bon, ce sera pour la prochaine fois."}, ask: "Comment s'est passé {topic} le {date} ?"},
		{name: "when", turns: []string{"A*:Devine quoi, hier {did} !", "B:Pas possible, raconte-moi tout."}, ask: "Quand {do} ?",
			pairs: "j'ai couru mon premier marathon=est-ce que {A} a couru le marathon|je me suis cassé le poignet dans l'escalier={A} s'est cassé le poignet|j'ai gagné le tournoi d'échecs={A} a gagné aux échecs|j'ai volé en planeur={A} a volé en planeur|on a choisi les alliances={A} a choisi les alliances|j'ai réussi le permis de conduire={A} a réussi le permis"},
		{name: "allergy", turns: []string{"B:Il y a quelque chose que tu ne peux pas manger ? Je cuisine dimanche.", "A*:Juste pas de {food} s'il te plaît, je gonfle comme un ballon."}, ask: "Qu'est-ce que {A} ne peut pas manger ?"},
	},
	fillers: []string{"Comment s'est passée ta journée ?", "Ici tout est calme, lessive et mails.", "Tu as vu le match hier soir ?", "Le temps est affreux, il pleut depuis lundi.", "J'adore cette chanson.",
		"Ma voisine a aussi un {animal}.", "J'aimerais bien voir {city} un jour.", "Ça a l'air génial !", "Haha, exactement.", "Le bus était encore en retard, {n} personnes sur le quai.",
		"Le {place} a besoin d'un coup de peinture.", "J'ai lu un article sur {food}.", "Tu fais quoi ce week-end ?", "À bientôt, prends soin de toi !", "J'ai vu un {thing} à la brocante.", "Je suis crevée aujourd'hui."},
	decoys: [][]string{
		{"Comment s'appelle le {animal} dans ce film ?", "Aucune idée, je me suis endormi au bout de dix minutes."},
		{"Quelle ville tu préfères, {city} ?", "Difficile à dire, je n'y ai jamais habité."},
		{"Combien d'argent tu demanderais pour un {thing} ?", "Ça dépend, {n} euros pour commencer."},
		{"Quel était le code de la porte du {place} de ton école ?", "Oublié depuis longtemps."},
		{"Quel travail fait ton cousin, toujours {job} ?", "Il a changé et il est content."},
		{"Est-ce que {relative} a aimé la fête, {feast} ?", "Oui, il y avait beaucoup de gâteau."},
		{"Tu vas demain à {topic} ?", "Je pense, si je trouve le temps."},
		{"Quand est-ce que ton frère a couru le marathon ?", "Il y a des années, je n'étais pas là."},
		{"Ton oncle peut tout manger, même {food} ?", "Tout sauf la soupe."},
		{"Mon chef s'est cassé le poignet au club d'échecs.", "Le pauvre, bon rétablissement."},
	},
}

var chinese = &language{
	code: "zh", people: []string{"小红", "大伟", "丽华", "建国", "雪梅", "志强", "秀英", "俊杰"},
	date: func(t time.Time) string { return fmt.Sprintf("%d年%d月%d日", t.Year(), int(t.Month()), t.Day()) },
	values: map[string][]string{
		"animal": {"鹦鹉", "乌龟", "仓鼠", "兔子", "金鱼", "刺猬"}, "pet": {"豆豆", "毛毛", "花生", "布丁", "奶茶", "团子"},
		"city": {"杭州", "成都", "青岛", "昆明", "西安", "厦门"}, "thing": {"钢琴", "望远镜", "摩托车", "缝纫机", "古筝", "帐篷"},
		"place": {"车库", "地下室", "办公室", "洗衣房", "阁楼", "仓库"}, "job": {"助产士", "飞行员", "翻译", "花匠", "木匠", "会计"},
		"relative": {"奶奶", "侄子", "妹妹", "舅舅", "阿姨", "表哥"}, "gift": {"风筝", "地毯", "拼图", "茶壶", "口琴", "手表"},
		"feast": {"毕业典礼", "满月酒", "乔迁", "退休", "订婚", "寿宴"}, "topic": {"合唱排练", "游泳课", "读书会"},
		"how":  {"很混乱，一半人迟到", "特别精彩，大家都来了", "因为暴雨取消了", "很累但是值得", "比计划的短", "来了很多新面孔"},
		"food": {"花生", "海鲜", "草莓", "芹菜", "芝麻", "杏仁"},
	},
	kinds: []kind{
		{name: "pet", turns: []string{"A*:我们家终于养了一只{animal}，孩子们给它取名叫{pet}。", "B:真可爱，恭喜恭喜！"}, ask: "{A}的{animal}叫什么名字？"},
		{name: "move", turns: []string{"A*:告诉你一个大消息：租房合同签好了，夏天结束我就搬到{city}。", "B:哇，那离这里好远。"}, ask: "{A}搬到{city}了吗？"},
		{name: "pronoun", turns: []string{"A:对了，你还记得我那个旧{thing}吗？", "B:当然，放在走廊的那个。怎么了？", "A*:上周末我把它卖了，卖了{n}块钱。"}, ask: "{A}的{thing}卖了多少钱？"},
		{name: "code", turns: []string{"B:{place}怎么进去？", "A*:密码是{n}，门把手要转两次。"}, ask: "{place}的门密码是多少？"},
		{name: "job", turns: []string{"B:你现在做什么工作？", "A*:三月开始当{job}，到现在都很喜欢。"}, ask: "{A}做什么工作？"},
		{name: "gift", turns: []string{"A*:{feast}的时候我送给{relative}一个{gift}，她高兴得哭了。", "B:你总是知道送什么好。"}, ask: "{A}在{feast}送了{relative}什么礼物？"},
		{name: dated, turns: []string{"A*:今天的{topic}{how}。", "B:没事，还有下次。"}, ask: "{date}的{topic}怎么样？"},
		{name: "when", turns: []string{"A*:你猜怎么着，昨天我{did}！", "B:真的吗，快说说。"}, ask: "{A}什么时候{do}？",
			pairs: "跑完了第一个马拉松=跑的马拉松|在楼梯上摔断了手腕=摔断手腕的|赢了象棋比赛=赢的象棋比赛|坐了滑翔机=坐的滑翔机|选好了结婚戒指=选的戒指|考到了驾照=考到驾照的"},
		{name: "allergy", turns: []string{"B:你有什么不能吃的吗？星期天我做饭。", "A*:别放{food}就行，我一吃就肿得像气球。"}, ask: "{A}不能吃什么？"},
	},
	fillers: []string{"今天过得怎么样？", "这边很安静，洗洗衣服回回邮件。", "昨晚的比赛你看了吗？", "天气太差了，从星期一开始一直下雨。", "我喜欢那首歌。", "我邻居也有一只{animal}。", "真想去{city}看看。",
		"听起来不错！", "哈哈，没错。", "公交车又晚点了，站台上有{n}个人。", "{place}该重新刷漆了。", "我看了一篇关于{food}的文章。", "周末有什么打算？", "回头聊，保重！", "在跳蚤市场看到一个{thing}。", "今天好累。"},
	decoys: [][]string{
		{"那部电影里的{animal}叫什么名字？", "不知道，我看了十分钟就睡着了。"},
		{"你更喜欢哪个城市，{city}吗？", "不好说，我没住过。"},
		{"一个{thing}你会卖多少钱？", "看情况，先说{n}块吧。"},
		{"老学校{place}的门密码是多少？", "早忘了。"},
		{"你表弟做什么工作，还是{job}吗？", "他换了，挺高兴的。"},
		{"{relative}喜欢那个{feast}吗？", "喜欢，有很多蛋糕。"},
		{"明天你去{topic}吗？", "应该去，有时间的话。"},
		{"你哥哥什么时候跑的马拉松？", "好多年前了，我不在场。"},
		{"你叔叔什么都能吃吗，{food}呢？", "除了汤都行。"},
		{"我老板在象棋俱乐部摔断了手腕。", "真可怜，早日康复。"},
	},
}
