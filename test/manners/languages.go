package main

import "regexp"

// language has what is said in a language.
type language struct {
	code, name         string // as in the rules: "de", "Deutsch"
	topics             []string
	familiar, formal   []string // messages of a person about a topic
	aside              []string // of the person about themselves; some cause notes of their own
	pasted             string   // a sentence of a text that the person pastes
	answers            []string // sentences of answers that address nobody
	toFamiliar, toForm string   // sentences of answers that do; "" = it makes no difference in this language
	saysFamiliar       *regexp.Regexp
	saysFormal         *regexp.Regexp
}

var english = &language{
	code: "en", name: "English",
	topics:   []string{"the bread", "the old bicycle", "the garden wall", "the night train", "the piano", "the winter coat", "the leaking tap", "the school play"},
	familiar: []string{"What would be the best way to begin with %s?", "Is it too late in the year for %s?", "How much time should one plan for %s?", "What do most people forget about %s?", "Would it be better to ask somebody about %s?", "How did people do this before, with %s?"},
	aside:    []string{"My sister and I have talked about %s all week.", "I have been tired all day, because of %s.", "Remember that my neighbour helps with %s."},
	pasted:   "The letter says that the work will begin in the spring, that the costs are shared by all who live in the house, and that questions should be sent to the office. ",
	answers: []string{"It is best to begin with the small part that shows whether the rest will work.", "Most of the time is lost where nobody has looked before.", "That depends on the weather and on how old the material is.", "There is one thing that is often forgotten, and that is the water.",
		"A week is enough for this, if the days are dry.", "The cheap way and the good way are the same here.", "It was done like this for a hundred years, and it still works.", "The first try will not be the last one."},
}

var german = &language{
	code: "de", name: "Deutsch",
	topics:   []string{"dem Brot", "dem alten Fahrrad", "der Gartenmauer", "dem Nachtzug", "dem Klavier", "dem Wintermantel", "dem Wasserhahn", "der Schulfeier"},
	familiar: []string{"Kannst du mir sagen, wie man mit %s am besten anfängt?", "Meinst du, dass es mit %s noch nicht zu spät ist?", "Wie viel Zeit würdest du für die Sache mit %s einplanen?", "Was vergessen die meisten bei %s, weißt du das?", "Hast du eine Idee, wen man wegen %s fragen kann?", "Wie würdest du das mit %s machen?"},
	formal:   []string{"Können Sie mir sagen, wie man mit %s am besten anfängt?", "Meinen Sie, dass es mit %s noch nicht zu spät ist?", "Wie viel Zeit würden Sie für die Sache mit %s einplanen?", "Was vergessen die meisten bei %s, wissen Sie das?", "Haben Sie eine Idee, wen man wegen %s fragen kann?", "Wie würden Sie das mit %s machen?"},
	aside:    []string{"Meine Schwester und ich haben die ganze Woche von %s geredet.", "Ich bin heute müde, und das wegen %s.", "Bitte nicht vergessen, dass mein Nachbar bei %s hilft."},
	pasted:   "In dem Brief steht, dass die Arbeiten im Frühjahr beginnen, dass die Kosten von allen im Haus getragen werden und dass Fragen an das Büro zu richten sind. ",
	answers: []string{"Am besten beginnt man mit dem kleinen Teil, der zeigt, ob der Rest gelingt.", "Die meiste Zeit geht dort verloren, wo vorher niemand nachgesehen hat.", "Das hängt vom Wetter ab und davon, wie alt das Material ist.", "Eine Sache wird oft vergessen, und das ist das Wasser.",
		"Eine Woche ist genug dafür, wenn die Tage trocken sind.", "Der billige Weg und der gute Weg sind hier derselbe.", "So wurde das schon vor hundert Jahren gemacht, und es geht noch immer.", "Der erste Versuch wird nicht der letzte sein."},
	toFamiliar: "Sag mir, wie es dir damit geht.", toForm: "Sagen Sie mir, wie es Ihnen damit geht.",
	saysFamiliar: word(`(?i:du|dich|dir|dein\pL*)`), saysFormal: word(`Sie|Ihnen|Ihre?\pL?`),
}

var french = &language{
	code: "fr", name: "Français",
	topics:   []string{"le pain", "le vieux vélo", "le mur du jardin", "le train de nuit", "le piano", "le manteau d'hiver", "le robinet", "la fête de l'école"},
	familiar: []string{"Peux-tu me dire par où commencer pour %s ?", "Est-ce que tu crois que c'est trop tard pour %s ?", "Combien de temps est-ce que tu prendrais pour %s ?", "Qu'est-ce que tu sais de plus sur %s ?", "À qui est-ce que tu parlerais pour %s ?", "Comment est-ce que tu ferais pour %s ?"},
	formal:   []string{"Pouvez-vous me dire par où commencer pour %s ?", "Est-ce que vous croyez que c'est trop tard pour %s ?", "Combien de temps est-ce que vous prendriez pour %s ?", "Qu'est-ce que vous savez de plus sur %s ?", "À qui est-ce que vous parleriez pour %s ?", "Comment est-ce que vous feriez pour %s ?"},
	aside:    []string{"Ma sœur et moi avons parlé toute la semaine de ceci : %s.", "Je suis très fatigué aujourd'hui, c'est pour %s.", "Mon voisin est avec nous pour %s."},
	pasted:   "La lettre dit que les travaux vont commencer au printemps, que tous ceux qui habitent la maison vont payer et que les questions sont pour le bureau. ",
	answers: []string{"Le mieux est de commencer par la petite partie qui montre si le reste est possible.", "Le temps est perdu là où personne ne regarde dans les coins.", "Cela dépend de la pluie et de la qualité des choses qui sont dans la maison.", "Il y a une chose que tous oublient, et c'est l'eau.",
		"Une semaine suffit pour cela, si les jours sont secs.", "La bonne façon et la plus simple sont ici les mêmes.", "On le fait comme cela dans le pays depuis cent ans, et les gens sont contents.", "Le premier essai est rarement le dernier, mais il est utile pour la suite."},
	toFamiliar: "Dis-moi ce que tu en penses.", toForm: "Dites-moi ce que vous en pensez.",
	saysFamiliar: word(`(?i:tu|te|toi|ton|ta|tes)`), saysFormal: word(`(?i:vous|votre|vos)`),
}

var spanish = &language{
	code: "es", name: "Español",
	topics:   []string{"el pan", "la bicicleta vieja", "el muro del jardín", "el tren de noche", "el piano", "el abrigo de invierno", "el grifo", "la fiesta de la escuela"},
	familiar: []string{"¿Puedes decirme cómo se empieza con %s?", "¿Crees tú que es muy tarde para %s?", "¿Cuánto tiempo necesitas tú para %s?", "¿Qué más sabes tú sobre %s?", "¿Con quién hablas tú por %s?", "¿Cómo lo haces tú con %s?"},
	formal:   []string{"¿Puede usted decirme cómo se empieza con %s?", "¿Cree usted que es muy tarde para %s?", "¿Cuánto tiempo necesita usted para %s?", "¿Qué más sabe usted sobre %s?", "¿Con quién habla usted por %s?", "¿Cómo lo hace usted con %s?"},
	aside:    []string{"Mi hermana y yo hemos hablado toda la semana de esto: %s.", "Estoy muy cansado hoy, y es por %s.", "Mi vecino está con nosotros por %s."},
	pasted:   "La carta dice que las obras empiezan en primavera, que los gastos los pagan todos los que viven en la casa y que las preguntas son para la oficina. ",
	answers: []string{"Lo mejor es empezar con la parte más pequeña, que muestra si el resto es posible.", "El tiempo se pierde donde nadie ha mirado antes.", "Eso depende de la lluvia y de la edad de las cosas que hay en la casa.", "Hay una cosa que todos olvidan, y es el agua.",
		"Una semana es bastante para esto, si los días son secos.", "La forma buena y la más simple son aquí la misma.", "Así se hace desde hace cien años en el pueblo, y la gente está contenta.", "El primer intento no es el último, pero es útil para los otros."},
	toFamiliar: "Dime qué piensas tú de todo esto.", toForm: "Dígame qué piensa usted de todo esto.",
	saysFamiliar: word(`(?i:tú|te|ti|tus?|contigo)`), saysFormal: word(`(?i:usted|ustedes)`),
}

var italian = &language{
	code: "it", name: "Italiano",
	topics:   []string{"il pane", "la vecchia bicicletta", "il muro del giardino", "il treno di notte", "il pianoforte", "il cappotto", "il rubinetto", "la festa della scuola"},
	familiar: []string{"Puoi dirmi come si comincia con %s?", "Secondo te è troppo tardi per %s?", "Di quanto tempo hai bisogno tu per %s?", "Che cosa sai tu di più: %s?", "Con chi parli tu per %s?", "Come faresti tu con %s?"},
	formal:   []string{"Può dirmi Lei come si comincia con %s?", "Secondo Lei è troppo tardi per %s?", "Quanto tempo serve a Lei per %s?", "Che cosa sa Lei di più: %s?", "Con chi parla Lei per %s?", "Come farebbe Lei con %s?"},
	aside:    []string{"Mia sorella e io abbiamo parlato tutta la settimana di questo: %s.", "Oggi sono molto stanco, ed è per %s.", "Il mio vicino è con noi per %s."},
	pasted:   "La lettera dice che i lavori cominciano in primavera, che le spese sono di tutti quelli che abitano nella casa e che le domande sono per l'ufficio. ",
	answers: []string{"La cosa migliore è cominciare con la parte più piccola, che mostra se il resto è possibile.", "Il tempo si perde dove nessuno ha guardato prima.", "Questo dipende dalla pioggia e da quanti anni hanno le cose della casa.", "C'è una cosa che tutti dimenticano, ed è l'acqua.",
		"Una settimana è abbastanza per questo, se i giorni sono asciutti.", "La strada buona e quella più semplice sono qui la stessa.", "Si fa così da cento anni nel paese, e la gente è contenta.", "La prima prova non è l'ultima, ma è utile per le altre."},
	toFamiliar: "Dimmi tu che cosa ne pensi di questo.", toForm: "Mi dica Lei che cosa ne pensa di questo.",
	saysFamiliar: word(`(?i:tu|te|ti|tuo|tua|tuoi|tue)`), saysFormal: word(`Lei|Suo|Sua`),
}

// word matches whole words; \b of package regexp does not know accents.
func word(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^\pL])(?:` + pattern + `)(?:[^\pL]|$)`)
}

var languages = []*language{english, german, french, spanish, italian}
