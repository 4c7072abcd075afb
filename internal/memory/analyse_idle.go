package memory

import "strings"

// The words that conversation is made of: courtesies, assent, thinking, saying and
// doing as such. They look for candidates like any word, but that one of them
// stands in a memory does not make it one that a message is about.
var idleWords = [languages]string{
	en: `hello hi hey morning afternoon evening night bye goodbye welcome thank thanks please sorry pardon good better best bad worse great nice fine cool awesome amazing
perfect wonderful glad happy sure right wrong true false correct agree exact exactly absolutely definitely certainly probably maybe perhaps actually basically simply honestly
seriously think thought mean guess suppose believe feel sound seem want need hope wish understand explain describe summarise summarize tell talk speak ask answer question reply help
try start begin stop continue wait go come do make give take put keep see look show happen today now later soon again never always time way lot bit thing stuff sort word haha lol
lmao wow mind matter problem worry idea opinion advice example difference fun funny interesting one short shorter long longer quick quickly`,
	de: `hallo moin servus grüß gruß grüße tag morgen abend nacht tschüss ciao willkommen danke dank danken bitte gern entschuldigung sorry verzeihung gut besser schlecht super toll prima schön
nett klasse perfekt wunderbar genau richtig falsch stimmt sicher klar wahr wahrscheinlich vielleicht eigentlich natürlich wirklich ehrlich bestimmt denken meinen glauben finden wissen
verstehen erklären beschreiben sagen reden sprechen erzählen fragen frage antwort antworten helfen hilfe versuchen versuch probieren anfangen beginnen aufhören warten weiter machen tun gehen
kommen geben nehmen lassen zeigen sehen schauen brauchen möchten mögen hoffen wünschen klingen scheinen passieren heute jetzt gleich später bald nochmal einmal immer zeit ding sache wort bisschen kurz kürzer lang klingt gib sag geht gehts viel viele vielen
egal schade haha lol idee meinung rat beispiel unterschied problem sorge lustig witzig spannend freut froh`,
	es: `hola día días tarde tardes noche noches mañana adiós chao bienvenido gracias agradecer favor perdón disculpa disculpar bueno buena buenos buenas bien mejor mal malo genial estupendo bonito
perfecto vale claro cierto seguro correcto exacto verdad falso quizás quizá tal realmente pensar opinar creer parecer saber entender comprender explicar describir resumir decir contar hablar
preguntar pregunta respuesta responder ayudar ayuda intentar intenta probar empezar parar seguir continuar esperar hacer ir venir dar tomar dejar poner mostrar ver mirar querer necesitar desear suceder pasar
sonar suena hoy ahora luego pronto siempre vez tiempo cosa palabra poco corto jaja jeje idea opinión consejo ejemplo diferencia problema divertido gracioso interesante contento mucha muchas nuevo nueva estás puedes puedo sigue dime dame cuéntame entiendo haz`,
	fr: `salut bonjour bonsoir coucou nuit soir soirée matin journée jour revoir bienvenue merci remercier plaît pardon désolé excuse bon bonne bien mieux mauvais mal super génial parfait joli
accord okay sûr certain vrai faux exact correct clair évidemment vraiment penser croire trouver sembler savoir comprendre expliquer décrire résumer dire raconter parler demander question
réponse répondre aider aide essayer commencer arrêter continuer attendre faire aller venir donner prendre laisser mettre montrer voir regarder vouloir besoin espérer souhaiter passer marcher sonner
maintenant tard bientôt toujours jamais fois temps chose mot court haha mdr idée avis conseil exemple différence problème grave drôle amusant intéressant content oui beaucoup s'il comprends redire dis donne-moi dis-moi raconte-moi penses-tu`,
	it: `ciao salve buongiorno buonasera buonanotte giorno notte sera mattina domani arrivederci benvenuto grazie ringraziare prego favore piacere scusa scusare buono buona bene meglio male cattivo ottimo
perfetto bello fantastico certo sicuro vero falso giusto sbagliato esatto corretto chiaro forse davvero pensare credere sembrare sapere capire spiegare descrivere riassumere dire raccontare parlare chiedere
domanda risposta rispondere aiutare aiuto provare iniziare cominciare fermare continuare aspettare fare andare venire dare prendere lasciare mettere mostrare vedere guardare volere bisogno sperare
succedere suonare oggi adesso ora presto sempre volta tempo parola poco corto haha idea opinione consiglio esempio differenza problema divertente interessante contento molte molti dimmi dammi puoi capisco fai`,
	pt: `olá oi dia tarde noite manhã tchau adeus bem-vindo obrigado obrigada agradecer favor desculpa desculpar bom boa bem melhor mal mau ótimo legal perfeito lindo certo claro verdade errado correto
exato seguro talvez realmente pensar achar acreditar parecer saber entender compreender explicar descrever resumir dizer contar falar perguntar pergunta resposta responder ajudar ajuda tentar começar
parar continuar esperar fazer ir vir dar pegar deixar pôr mostrar ver olhar querer precisar desejar acontecer soar hoje agora logo sempre vez tempo coisa palavra pouco curto haha kkk ideia opinião
conselho exemplo diferença problema engraçado divertido interessante contente feliz muita muitas pode podes diga dê entendo faça`,
	ru: `здравствуй здравствуйте добрый доброе доброй утро утра день дня вечер вечера ночь ночи спокойной пока свидания спасибо благодарю пожалуйста извини извините прости хорошо хороший лучше плохо плохой
отлично прекрасно супер круто класс ладно конечно верно правильно неправильно неверно правда точно ясно понятно уверен возможно наверное действительно думать думаешь думаю считать считаешь казаться кажется знать
знаешь понимать понимаю понять понял объяснить объясни описать рассказать расскажи говорить говоришь спросить вопрос ответ ответить ответь помочь помоги помощь попробовать попробуй начать остановиться стоп продолжать
продолжай ждать делать сделать сделай давай идти дать дай взять показать покажи видеть смотреть хотеть хочу хочешь нужно надеяться случиться звучит сегодня скоро всегда раз время вещь слово немного короче
ха хаха идея мнение совет пример разница проблема смешно забавно интересно рад рада`,
}

// Pairs of Han characters of the same kind.
const idleIdeographs = `你好 您好 早上 上好 晚上 晚安 早安 谢谢 感谢 多谢 非常 再见 拜拜 欢迎 抱歉 对不 不起 没关 关系 好的 好吧 对的 不对 没事 不用 不要 不客 客气 麻烦 哈哈 嘻嘻 呵呵 觉得 认为 知道 不知 明白 没明 理解 解释
描述 总结 帮忙 帮我 帮助 告诉 请问 回答 问题 继续 再试 试试 一次 开始 停止 等等 说说 看看 再说 听起 起来 来不 不错 很好 最好 更好 真好 太好 可以 确定 当然 真的 是的 没错 正确 错误 可能 也许 今天 现在 以后 最近 一下 一点 一遍 意思 有意
意见 想法 建议 例子 区别 高兴 开心 有趣 好笑 这样 那样 这么 那么 就这 吧好 做 办`

var idle, idleIdeo = makeIdle()

func makeIdle() (stems [languages]map[string]bool, ideo map[rune]bool) {
	for l, list := range idleWords {
		stems[l] = map[string]bool{}
		for w := range strings.FieldsSeq(list + " " + stopWords[l]) { // qu'en is en too
			for _, part := range words(w) {
				stems[l][stemIn(language(l), part.text)] = true
			}
		}
	}
	ideo = map[rune]bool{}
	for _, r := range strings.Join(strings.Fields(stopIdeographs+" "+idleIdeographs), "") {
		ideo[r] = true
	}
	return stems, ideo
}

// isIdle reports whether w says nothing of what a message of langs is about. Of
// characters without spaces a piece may hold the end of one word and the beginning
// of the next, so each character counts.
func isIdle(w word, langs []language) bool {
	if isStop(w, langs) {
		return true
	}
	if w.ideo {
		return strings.IndexFunc(w.text, func(r rune) bool { return !idleIdeo[r] }) < 0
	}
	for _, l := range langs {
		if idle[l][stemIn(l, w.text)] {
			return true
		}
	}
	return false
}
