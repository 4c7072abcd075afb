package memory

import (
	"strings"
)

// The words of time, in the languages that are stemmed, and in Chinese.
var (
	months = numbered(`january januar jänner enero janvier gennaio janeiro январь января январе jan|
february februar febrero février febbraio fevereiro февраль февраля феврале feb|march märz marzo mars março март марта марте|
april abril avril aprile апрель апреля апреле apr|may mai mayo maggio maio май мая мае|june juni junio juin giugno junho июнь июня июне jun|
july juli julio juillet luglio julho июль июля июле jul|august agosto août август августа августе aug|
september septiembre septembre settembre setembro сентябрь сентября сентябре sep sept|october oktober octubre octobre ottobre outubro октябрь октября октябре oct okt|
november noviembre novembre novembro ноябрь ноября ноябре nov|december dezember diciembre décembre dicembre dezembro декабрь декабря декабре dec dez`, 1)
	// Words that are months and other things too.
	doubtful    = setOf(`may march mars mai jan feb apr jun jul aug sep sept oct okt nov dec dez mae`)
	beforeMonth = setOf(`in on of last next this since until by early late im en de em em в с до mid`)
	weekdays    = numbered(`sunday sonntag domingo dimanche domenica воскресенье воскресенья|monday montag lunes lundi lunedì понедельник понедельника|
tuesday dienstag martes mardi martedì вторник вторника|wednesday mittwoch miércoles mercredi mercoledì среда среду среды|
thursday donnerstag jueves jeudi giovedì четверг четверга|friday freitag viernes vendredi venerdì пятница пятницу пятницы|
saturday samstag sonnabend sábado samedi sabato суббота субботу субботы`, 0)
	relativeDays = numbered(`today heute hoy aujourd'hui oggi hoje сегодня 今天|yesterday gestern ayer hier ieri ontem вчера 昨天|vorgestern anteayer anteontem позавчера 前天`, 0)
	timeUnits    = units(`d:day,days,tag,tage,tagen,día,días,jour,jours,giorno,giorni,dia,dias,день,дня,дней
w:week,weeks,woche,wochen,semana,semanas,semaine,semaines,settimana,settimane,неделя,неделе,неделю,недели,недель,周,星期,上周
m:month,months,monat,monate,monaten,monats,mes,meses,mois,mese,mesi,mês,месяц,месяце,месяца,месяцев,个月
y:year,years,jahr,jahre,jahren,jahres,año,años,ans,année,années,anno,anni,ano,anos,год,году,года,лет,年`)
	pastWords  = setOf(`last previous past letzte letzten letzter letztes letztem vergangene vergangenen vergangenes pasada pasado pasados dernier dernière derniers scorsa scorso passata passato passada passado прошлой прошлом прошлый прошлую прошлого 上 上个 上周 去年 去`)
	thisWords  = setOf(`this diese dieser dieses diesen diesem esta este cette cet ce questa questo quest этой этом этот эту 这 今年 今 本`)
	agoWords   = setOf(`ago vor hace il fa há atrás назад 前 以前 之前`)
	whenWords  = setOf(`when wann cuándo cuando quand quando когда 时候 几号 几时 哪天 哪年 何时 いつ`)
	whichWords = setOf(`what which how welches welcher welchem welchen que qué quel quelle quale che qual какой каком какого 哪 几`)
	timeWords  = setOf(`yesterday today tomorrow tonight ago last next recently soon now weekend morning evening afternoon night since lately earlier later
gestern heute morgen vorgestern übermorgen vor letzte letzten letzter letztes nächste nächsten nächster nächstes kürzlich neulich bald wochenende abend seit
ayer hoy mañana anoche hace pasado pasada próximo próxima fin recientemente hier aujourd'hui demain dernier dernière prochain prochaine récemment depuis
ieri oggi domani scorso scorsa prossimo prossima fa recentemente ontem hoje amanhã atrás próximo recentemente
вчера сегодня завтра назад прошлой прошлом прошлый следующей следующий недавно скоро выходные выходных
昨天 今天 明天 前天 后天 昨晚 今晚 上周 下周 去年 今年 明年 上个 下个 周末 刚刚 最近`)
	numberWords = numbered(`|one a an ein eine einem einer un una une uno um uma один одну 一|two zwei dos deux due dois duas два две 两 二|three drei tres trois tre três три 三|
four vier cuatro quatre quattro quatro четыре 四|five fünf cinco cinq cinque пять 五|six sechs seis sei шесть 六|seven sieben siete sept sette sete семь 七|
eight acht ocho huit otto oito восемь 八|nine neun nueve neuf nove девять 九|ten zehn diez dix dieci dez десять 十`, 0)
)

// numbered reads groups of words, divided by |, that mean first, first+1, ….
func numbered(groups string, first int) map[string]int {
	out := map[string]int{}
	for i, group := range strings.Split(groups, "|") {
		for w := range strings.FieldsSeq(group) {
			out[foldWord(w)] = first + i
			out[unaccented(foldWord(w))] = first + i
		}
	}
	return out
}

func setOf(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[foldWord(w)] = true
		out[unaccented(foldWord(w))] = true
	}
	return out
}

func units(lines string) map[string]byte {
	out := map[string]byte{}
	for line := range strings.FieldsSeq(lines) {
		unit, list, _ := strings.Cut(line, ":")
		for w := range strings.SplitSeq(list, ",") {
			out[foldWord(w)] = unit[0]
			if w != "año" && w != "años" { // without its mark it is another word
				out[unaccented(foldWord(w))] = unit[0]
			}
		}
	}
	return out
}
