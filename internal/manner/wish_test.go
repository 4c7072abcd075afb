package manner

import (
	"slices"
	"strings"
	"testing"
)

// phrases are what people write, by language: what it wishes for, or "" for nothing.
var phrases = map[string][]struct{ text, want string }{
	"en": {
		{"answer shorter, please", "length short"}, {"no, longer", "length long"}, {"Shorter please", "length short"},
		{"Could you answer more briefly?", "length short"}, {"Be concise from now on.", "length short"}, {"Thanks! Keep it short, please.", "length short"},
		{"Your answers are way too long.", "length short"}, {"longer again, please", "length long"}, {"no emojis", "emoji none"},
		{"Please don't use emojis 🙏", "emoji none"}, {"You can use emojis again", "emoji some"}, {"no lists", "lists none"},
		{"Please stop using bullet points.", "lists none"}, {"in English please", "language en"}, {"Speak German with me", "language de"},
		{"Short answers, and no emojis please", "emoji none length short"}, {"don't say 'absolutely'", "not_say absolutely"},
		{"Please don't say “great question” anymore.", "not_say great question"}, {"Stop using the word \"delve\"", "not_say delve"},

		{"Make the paragraph shorter", ""}, {"Translate: keep it short", ""}, {"My boss wrote “answer shorter, please”", ""},
		{"My boss wrote, answer shorter, please", ""}, {"Write this mail in English please", ""}, {"Is there a shorter way?", ""}, {"Shorter?", ""},
		{"How do you say 'answer shorter' in German?", ""}, {"She says I should be brief", ""}, {"Read this:\nno emojis", ""},
		{"Don't answer shorter.", ""}, {"Don't say 'no' to my boss", ""}, {"Don't say anything", ""}, {"English", ""},
		{"There are no lists on the table", ""}, {"I need two lists", ""}, {"The days are getting longer again", ""},
	},
	"de": {
		{"Antworte bitte kürzer", "length short"}, {"Kürzer bitte", "length short"}, {"Kannst du kürzer antworten?", "length short"},
		{"Fass dich kurz.", "length short"}, {"nein, länger", "length long"}, {"Bitte wieder ausführlicher", "length long"},
		{"Deine Antworten sind zu lang", "length short"}, {"keine Emojis", "emoji none"}, {"Bitte keine Smileys mehr!", "emoji none"},
		{"lass die Emojis weg", "emoji none"}, {"keine Listen bitte", "lists none"}, {"duze mich", "address familiar"}, {"Du kannst mich duzen", "address familiar"},
		{"Wir können uns gerne duzen.", "address familiar"}, {"Sie bitte", "address formal"}, {"Siezen Sie mich bitte", "address formal"},
		{"Auf Deutsch bitte", "language de"}, {"antworte auf Englisch", "language en"}, {"Sag bitte nicht mehr „absolut“", "not_say absolut"},

		{"Mach den Text kürzer", ""}, {"Übersetze das auf Deutsch", ""}, {"Der Weg ist kürzer", ""}, {"Er sagte: antworte kürzer", ""},
		{"Kann ich dich duzen?", ""}, {"Mein Chef duzt mich", ""}, {"Sie bittet um Antwort", ""}, {"Ich habe keine Emojis gefunden", ""},
		{"Deutsch", ""}, {"Wie heißt das auf Englisch?", ""}, {"Sag ihm nicht „ja“", ""}, {"Antworte nicht kürzer", ""},
		{"Die Tage werden länger", ""}, {"Schreib eine kurze Mail an Anna", ""}, {"„keine Emojis“ steht im Vertrag", ""}, {"Soll ich Sie siezen?", ""},
	},
	"es": {
		{"Responde más corto, por favor", "length short"}, {"más breve", "length short"}, {"¿Puedes responder más corto?", "length short"},
		{"Sé más breve", "length short"}, {"Tus respuestas son muy largas", "length short"}, {"no, más largo", "length long"},
		{"sin emojis", "emoji none"}, {"No uses emojis, por favor", "emoji none"}, {"puedes usar emojis", "emoji some"}, {"sin listas", "lists none"},
		{"tutéame", "address familiar"}, {"Puedes tutearme", "address familiar"}, {"Trátame de usted", "address formal"},
		{"En español por favor", "language es"}, {"Háblame en inglés", "language en"}, {"No digas «absolutamente»", "not_say absolutamente"},

		{"Haz el texto más corto", ""}, {"Traduce esto en español", ""}, {"Él dijo: sin emojis", ""}, {"El camino más corto pasa por allí", ""},
		{"¿Más corto?", ""}, {"Español", ""}, {"Quiero una lista sin emojis", ""}, {"No le digas «sí» a Ana", ""}, {"¿Te puedo tutear?", ""},
		{"No respondas más corto", ""}, {"Escribe una carta corta", ""}, {"Mi jefe quiere respuestas breves de mí", ""}, {"Dos listas sin terminar", ""},
		{"¿Cómo se dice «más breve»?", ""}, {"Usted lo sabe", ""},
	},
	"fr": {
		{"Réponds plus court, s'il te plaît", "length short"}, {"plus court", "length short"}, {"Sois plus bref", "length short"},
		{"Peux-tu répondre plus court ?", "length short"}, {"Tes réponses sont trop longues", "length short"}, {"non, plus long", "length long"},
		{"pas d'emojis", "emoji none"}, {"Plus d’emojis stp", "emoji none"}, {"sans emojis", "emoji none"}, {"pas de listes", "lists none"},
		{"tutoie-moi", "address familiar"}, {"On peut se tutoyer", "address familiar"}, {"Vouvoyez-moi, s'il vous plaît", "address formal"},
		{"En français s'il te plaît", "language fr"}, {"Parle-moi en anglais", "language en"}, {"Ne dis plus « absolument »", "not_say absolument"},

		{"Rends le texte plus court", ""}, {"Traduis ça en français", ""}, {"Le chemin plus court est là", ""}, {"Il a dit : sans emojis", ""},
		{"Plus court ?", ""}, {"Français", ""}, {"Un café sans sucre", ""}, {"Ne lui dis pas « oui »", ""}, {"Est-ce que je peux te tutoyer ?", ""},
		{"Écris une lettre courte à Anne", ""}, {"Mon chef me tutoie", ""}, {"Je vois plus d'emojis qu'avant", ""}, {"Ne réponds pas plus court", ""},
		{"« plus court » est écrit ici", ""},
	},
	"it": {
		{"Rispondi più breve, per favore", "length short"}, {"più breve", "length short"}, {"Puoi rispondere più breve?", "length short"},
		{"Risposte più brevi, grazie", "length short"}, {"Le tue risposte sono troppo lunghe", "length short"}, {"no, più lungo", "length long"},
		{"senza emoji", "emoji none"}, {"Non usare emoji", "emoji none"}, {"Basta emoji per favore", "emoji none"}, {"senza elenchi", "lists none"},
		{"dammi del tu", "address familiar"}, {"Possiamo darci del tu?", "address familiar"}, {"Mi dia del Lei", "address formal"},
		{"In italiano per favore", "language it"}, {"Rispondi in inglese", "language en"}, {"Non dire più «assolutamente»", "not_say assolutamente"},

		{"Rendi il testo più breve", ""}, {"Traduci in italiano", ""}, {"La strada più corta", ""}, {"Ha detto: senza emoji", ""}, {"Più breve?", ""},
		{"Italiano", ""}, {"Un caffè senza zucchero", ""}, {"Non dirgli «sì»", ""}, {"Posso darti del tu?", ""}, {"Scrivi una lettera breve", ""},
		{"Il capo mi dà del tu", ""}, {"Non rispondere più breve", ""}, {"Due elenchi senza fine", ""}, {"«senza emoji» c'è scritto", ""},
	},
	"ja": {
		{"短く答えてください", "length short"}, {"もっと短く", "length short"}, {"これからは簡潔にお願いします", "length short"}, {"返事が長すぎます", "length short"},
		{"手短にお願いします。", "length short"}, {"短く答えてもらえますか？", "length short"}, {"いや、長くして", "length long"}, {"絵文字は使わないでください", "emoji none"},
		{"絵文字なしで", "emoji none"}, {"箇条書きはやめてください", "lists none"}, {"タメ口でいいよ", "address familiar"}, {"敬語でお願いします", "address formal"},
		{"日本語でお願いします", "language ja"}, {"英語で答えてください", "language en"}, {"「もちろん」と言わないでください", "not_say もちろん"},

		{"この文章を短くしてください", ""}, {"これを英語に訳してください", ""}, {"髪を短く切った", ""}, {"上司が「短く答えて」と言った", ""}, {"日本語", ""},
		{"絵文字とは何ですか", ""}, {"英語で何と言いますか？", ""}, {"敬語を教えてください", ""}, {"短い手紙を書いて", ""}, {"上司に「はい」と言わないで", ""},
		{"リストを作って", ""}, {"長くなりました", ""}, {"タメ口の友達", ""}, {"日本語で書かれた本", ""}, {"絵文字を探して", ""},
	},
	"zh": {
		{"请回答得简短一点", "length short"}, {"简短一点", "length short"}, {"短一点，谢谢", "length short"}, {"以后请简洁一些", "length short"}, {"回答太长了", "length short"},
		{"不，长一点", "length long"}, {"可以简短一点吗？", "length short"}, {"不要用表情符号", "emoji none"}, {"别发表情了", "emoji none"}, {"可以用表情", "emoji some"},
		{"请不要用列表", "lists none"}, {"不用说您", "address familiar"}, {"请用您称呼我", "address formal"}, {"请用中文回答", "language zh"}, {"说英语", "language en"},
		{"不要说“绝对”", "not_say 绝对"},

		{"把这段话写短一点", ""}, {"请翻译成中文", ""}, {"老板说“简短一点”", ""}, {"中文", ""}, {"头发短一点好看", ""}, {"用英语怎么说？", ""},
		{"表情符号是什么", ""}, {"列一个清单", ""}, {"不要跟老板说“不”", ""}, {"您好", ""}, {"这条路长一点", ""}, {"写一封简短的信", ""}, {"他不用列表", ""},
		{"短一点？", ""},
	},
}

// TestWishes: what people write is understood, or is not a wish.
func TestWishes(t *testing.T) {
	for language, all := range phrases {
		if len(all) < 29 {
			t.Errorf("%s: only %d phrases", language, len(all))
		}
		for _, c := range all {
			var got []string
			for _, f := range wishesIn(c.text) {
				got = append(got, f.key+" "+f.value)
			}
			slices.Sort(got)
			if s := strings.Join(slices.Compact(got), " "); s != c.want {
				t.Errorf("%s: %q wishes for %q, want %q", language, c.text, s, c.want)
			}
		}
	}
}

// TestHabits: how people address the assistant and in which language they write is seen where it is clear.
func TestHabits(t *testing.T) {
	for text, want := range map[string]string{
		"Kannst du mir sagen, wann der nächste Zug nach Bremen fährt?":  "address familiar language de",
		"Können Sie mir sagen, wann der nächste Zug nach Bremen fährt?": "address formal language de",
		"Peux-tu me dire quand part le prochain train pour Lyon ?":      "address familiar language fr",
		"Pouvez-vous me dire quand part le prochain train pour Lyon ?":  "address formal language fr",
		"Puoi dirmi quando parte il prossimo treno per la città?":       "address familiar language it",
		"¿Puedes decirme cuándo sale el próximo tren para la ciudad?":   "address familiar language es",
		"Can you tell me when the next train leaves for the city?":      "language en",
		"次の電車は何時に出ますか":                                                  "language ja",
		"下一班去上海的火车几点出发":                                                 "language zh",
		"Danke 😊": "emoji some", "ok": "", "Berlin": "", "Wie können sie das wissen, und wer sind sie?": "language de",
		"Sie schrieb: „Kannst du kommen?“": "language de", "☑": "", "du": "",
	} {
		var got []string
		for _, f := range habitsIn(text) {
			got = append(got, f.key+" "+f.value)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q shows %q, want %q", text, s, want)
		}
	}
}
