package task

const (
	aSecond = 1
	aMinute = 60 * aSecond
	anHour  = 60 * aMinute
	aDay    = 24 * anHour
	aWeek   = 7 * aDay
)

var english = tongue{
	name:  "en",
	at:    `(?:at )?(?:{fix}|(?P<half>half past )?{h}(?:[:.]{m})?(?: o'clock)?(?: ?{part})?)`,
	pre:   map[string]string{"morning": "morning", "afternoon": "afternoon", "evening": "evening", "night": "night"},
	parts: map[string]string{"am": "am", "a.m": "am", "a.m.": "am", "pm": "pm", "p.m": "pm", "p.m.": "pm", "in the morning": "morning", "in the afternoon": "afternoon", "in the evening": "evening", "at night": "night"},
	fixed: map[string]string{"noon": "12:00", "midnight": "00:00"},
	numbers: map[string]int{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
		"eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30},
	units: map[string]int{"sec": aSecond, "secs": aSecond, "second": aSecond, "seconds": aSecond, "min": aMinute, "mins": aMinute, "minute": aMinute, "minutes": aMinute, "h": anHour, "hour": anHour, "hours": anHour, "day": aDay, "days": aDay, "week": aWeek, "weeks": aWeek},
	weekdays: map[string]string{"monday": "mon", "tuesday": "tue", "wednesday": "wed", "thursday": "thu", "friday": "fri", "saturday": "sat", "sunday": "sun",
		"mon": "mon", "tue": "tue", "wed": "wed", "thu": "thu", "fri": "fri", "sat": "sat", "sun": "sun"},
	date: `(?P<dom>[0-9]{1,2})(?:st|nd|rd|th)?`,
	forms: []wording{
		{inSense, `in {n} {unit}`}, {inSense, `{n} {unit} from now`}, {inSense, `in (?P<halved>half an hour)`},
		{todaySense, `today {at}`}, {todaySense, `this {pre} {at}`}, {todaySense, `to(?P<pre>night) {at}`}, {todaySense, `{at} today`},
		{tomorrowSense, `tomorrow(?: {pre})? {at}`}, {tomorrowSense, `{at} tomorrow(?: {pre})?`}, {afterSense, `(?:the )?day after tomorrow {at}`},
		{weekdaySense, `on {day}(?: {pre})? {at}`}, {weekdaySense, `{day}(?: {pre})? {at}`}, {weekdaySense, `{at} on {day}`},
		{dailySense, `(?:every day|daily|each day|every {pre}) {at}`}, {dailySense, `{at} (?:every day|daily|each day)`},
		{workdaySense, `(?:on weekdays|every weekday|on workdays|every workday) {at}`}, {workdaySense, `{at} (?:on weekdays|every weekday|on workdays|every workday)`},
		{weeklySense, `(?:every|each) {day}(?: {pre})? {at}`}, {weeklySense, `{at} (?:every|each) {day}`}, {weeklySense, `on {day}s {at}`},
		{monthlySense, `(?:every month|monthly) on (?:the |day )?{date} {at}`}, {monthlySense, `on the {date} of (?:every|each) month {at}`},
		{intervalSense, `every {n} {unit}`}, {intervalSense, `every {unit}`}, {intervalSense, `(?P<unit>hour)ly`}, {intervalSense, `every (?P<halved>half hour)`},
	},
}

var german = tongue{
	name:  "de",
	at:    `(?:um |gegen )?(?:{fix}|(?P<halb>halb )?{h}(?:[:.]{m})?(?: uhr(?: (?:(?P<half>dreißig)))?)?(?: {part})?)`,
	pre:   map[string]string{"früh": "morning", "vormittag": "morning", "nachmittag": "afternoon", "abend": "evening", "nacht": "night"},
	parts: map[string]string{"morgens": "morning", "früh": "morning", "vormittags": "morning", "mittags": "noon", "nachmittags": "afternoon", "abends": "evening", "nachts": "night"},
	fixed: map[string]string{"mittag": "12:00", "mitternacht": "00:00"},
	numbers: map[string]int{"ein": 1, "eine": 1, "einer": 1, "einem": 1, "eins": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9,
		"zehn": 10, "elf": 11, "zwölf": 12, "fünfzehn": 15, "zwanzig": 20, "dreißig": 30},
	units:    map[string]int{"sek": aSecond, "sekunde": aSecond, "sekunden": aSecond, "min": aMinute, "minute": aMinute, "minuten": aMinute, "stunde": anHour, "stunden": anHour, "tag": aDay, "tage": aDay, "tagen": aDay, "woche": aWeek, "wochen": aWeek},
	weekdays: map[string]string{"montag": "mon", "dienstag": "tue", "mittwoch": "wed", "donnerstag": "thu", "freitag": "fri", "samstag": "sat", "sonnabend": "sat", "sonntag": "sun"},
	date:     `(?P<dom>[0-9]{1,2})\.?`,
	forms: []wording{
		{inSense, `in {n} {unit}`}, {inSense, `in (?P<halved>einer halben stunde)`},
		{todaySense, `heute(?: {pre})? {at}`}, {tomorrowSense, `morgen(?: {pre})? {at}`}, {afterSense, `übermorgen(?: {pre})? {at}`},
		{todaySense, `{at} heute`}, {tomorrowSense, `{at} morgen`},
		{weekdaySense, `(?:am )?{day}(?: {pre})? {at}`},
		{dailySense, `(?:jeden tag|täglich) {at}`}, {dailySense, `jeden (?:morgen|{pre}) {at}`},
		{workdaySense, `(?:werktags|jeden werktag|an werktagen) {at}`},
		{weeklySense, `(?:jeden|jede woche am|immer) {day}(?: {pre})? {at}`}, {weeklySense, `{day}s {at}`}, {weeklySense, `immer {day}s {at}`},
		{monthlySense, `(?:jeden monat|monatlich) am {date} {at}`}, {monthlySense, `(?:am|jeden) {date} (?:jedes monats|des monats|im monat) {at}`},
		{intervalSense, `alle {n} {unit}`}, {intervalSense, `jede {unit}`}, {intervalSense, `alle (?P<halved>halbe stunde|halben stunden)`}, {intervalSense, `jede (?P<halved>halbe stunde)`},
	},
}

var french = tongue{
	name:  "fr",
	at:    `(?:à |a )?(?:{fix}|{h}(?:(?: ?(?:h|heures?) ?|:){m}| ?(?:h|heures?)(?: (?:(?P<half>et demie)|(?P<quarter>et quart)))?)(?: {part})?)`,
	pre:   map[string]string{"matin": "morning", "après-midi": "afternoon", "soir": "evening"},
	parts: map[string]string{"du matin": "morning", "de l'après-midi": "afternoon", "du soir": "evening"},
	fixed: map[string]string{"midi": "12:00", "minuit": "00:00"},
	numbers: map[string]int{"un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "six": 6, "sept": 7, "huit": 8, "neuf": 9, "dix": 10, "onze": 11, "douze": 12,
		"quinze": 15, "vingt": 20, "trente": 30},
	units:    map[string]int{"seconde": aSecond, "secondes": aSecond, "min": aMinute, "minute": aMinute, "minutes": aMinute, "h": anHour, "heure": anHour, "heures": anHour, "jour": aDay, "jours": aDay, "semaine": aWeek, "semaines": aWeek},
	weekdays: map[string]string{"lundi": "mon", "mardi": "tue", "mercredi": "wed", "jeudi": "thu", "vendredi": "fri", "samedi": "sat", "dimanche": "sun"},
	date:     `(?P<dom>[0-9]{1,2})(?:er)?`,
	forms: []wording{
		{inSense, `dans {n} {unit}`}, {inSense, `dans (?P<halved>une demi-heure)`},
		{todaySense, `aujourd'hui {at}`}, {todaySense, `ce(?:t)? {pre} {at}`}, {tomorrowSense, `demain(?: {pre})? {at}`}, {afterSense, `après-demain(?: {pre})? {at}`},
		{weekdaySense, `(?:ce )?{day}(?: {pre})? {at}`},
		{dailySense, `(?:tous les jours|chaque jour|quotidiennement) {at}`}, {dailySense, `tous les {pre}s {at}`}, {dailySense, `chaque {pre} {at}`},
		{workdaySense, `(?:en semaine|chaque jour ouvré|les jours ouvrés|tous les jours ouvrés) {at}`},
		{weeklySense, `(?:chaque|tous les|le) {day}s?(?: {pre})? {at}`},
		{monthlySense, `(?:chaque mois|tous les mois) le {date} {at}`}, {monthlySense, `le {date} (?:de chaque|du) mois {at}`},
		{intervalSense, `toutes les {n} {unit}`}, {intervalSense, `tous les {n} {unit}`}, {intervalSense, `(?:chaque|toutes les) {unit}`}, {intervalSense, `toutes les (?P<halved>demi-heures)`},
	},
}

var spanish = tongue{
	name:  "es",
	at:    `(?:(?:a|al) )?(?:{fix}|(?:(?:a )?la[s]? )?{h}(?:[:.]{m})?(?: (?:(?P<half>y media)|(?P<quarter>y cuarto)))?(?: h(?:oras)?)?(?: {part})?)`,
	pre:   map[string]string{"por la mañana": "morning", "por la tarde": "afternoon", "por la noche": "evening"},
	parts: map[string]string{"de la mañana": "morning", "de la tarde": "afternoon", "de la noche": "evening", "de la madrugada": "dawn", "am": "am", "pm": "pm", "a.m.": "am", "p.m.": "pm"},
	fixed: map[string]string{"mediodía": "12:00", "medianoche": "00:00"},
	numbers: map[string]int{"un": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "nueve": 9, "diez": 10, "once": 11, "doce": 12,
		"quince": 15, "veinte": 20, "treinta": 30},
	units:    map[string]int{"segundo": aSecond, "segundos": aSecond, "min": aMinute, "minuto": aMinute, "minutos": aMinute, "hora": anHour, "horas": anHour, "día": aDay, "días": aDay, "semana": aWeek, "semanas": aWeek},
	weekdays: map[string]string{"lunes": "mon", "martes": "tue", "miércoles": "wed", "jueves": "thu", "viernes": "fri", "sábado": "sat", "domingo": "sun", "sábados": "sat", "domingos": "sun"},
	date:     `(?P<dom>[0-9]{1,2})`,
	forms: []wording{
		{inSense, `(?:en|dentro de) {n} {unit}`}, {inSense, `(?:en|dentro de) (?P<halved>media hora)`},
		{todaySense, `hoy(?: {pre})? {at}`}, {todaySense, `hoy {at} {pre}`}, {tomorrowSense, `mañana(?: {pre})? {at}`}, {tomorrowSense, `mañana {at} {pre}`}, {afterSense, `pasado mañana(?: {pre})? {at}`},
		{weekdaySense, `(?:este |el ){day}(?: {pre})? {at}`},
		{dailySense, `(?:todos los días|cada día|a diario|diariamente) {at}`},
		{workdaySense, `(?:entre semana|los días laborables|cada día laborable|de lunes a viernes) {at}`},
		{weeklySense, `(?:todos los|cada|los) {day}(?: {pre})? {at}`},
		{monthlySense, `(?:cada mes|todos los meses) el (?:día )?{date} {at}`}, {monthlySense, `el (?:día )?{date} de cada mes {at}`},
		{intervalSense, `cada {n} {unit}`}, {intervalSense, `cada {unit}`}, {intervalSense, `cada (?P<halved>media hora)`},
	},
}

var italian = tongue{
	name:  "it",
	at:    `(?:alle (?:ore )?|all'|ore |a )?(?:{fix}|{h}(?:[:.]{m})?(?: (?:(?P<half>e mezz[ao])|(?P<quarter>e un quarto)))?(?: {part})?)`,
	pre:   map[string]string{"mattina": "morning", "pomeriggio": "afternoon", "sera": "evening", "notte": "night"},
	parts: map[string]string{"di mattina": "morning", "del mattino": "morning", "di pomeriggio": "afternoon", "del pomeriggio": "afternoon", "di sera": "evening", "di notte": "night"},
	fixed: map[string]string{"mezzogiorno": "12:00", "mezzanotte": "00:00"},
	numbers: map[string]int{"un": 1, "una": 1, "un'": 1, "due": 2, "tre": 3, "quattro": 4, "cinque": 5, "sei": 6, "sette": 7, "otto": 8, "nove": 9, "dieci": 10, "undici": 11, "dodici": 12,
		"quindici": 15, "venti": 20, "trenta": 30},
	units:    map[string]int{"secondo": aSecond, "secondi": aSecond, "min": aMinute, "minuto": aMinute, "minuti": aMinute, "ora": anHour, "ore": anHour, "giorno": aDay, "giorni": aDay, "settimana": aWeek, "settimane": aWeek},
	weekdays: map[string]string{"lunedì": "mon", "martedì": "tue", "mercoledì": "wed", "giovedì": "thu", "venerdì": "fri", "sabato": "sat", "domenica": "sun"},
	date:     `(?P<dom>[0-9]{1,2})°?`,
	forms: []wording{
		{inSense, `(?:tra|fra) {n} ?{unit}`}, {inSense, `(?:tra|fra) (?P<halved>mezz'ora)`},
		{todaySense, `oggi(?: {pre})? {at}`}, {todaySense, `sta(?P<pre>sera) {at}`}, {tomorrowSense, `domani(?: {pre})? {at}`}, {afterSense, `dopodomani(?: {pre})? {at}`},
		{weekdaySense, `(?:questo |questa )?{day}(?: {pre})? {at}`},
		{dailySense, `(?:ogni giorno|tutti i giorni|quotidianamente) {at}`}, {dailySense, `ogni {pre} {at}`},
		{workdaySense, `(?:nei giorni feriali|ogni giorno feriale|dal lunedì al venerdì) {at}`},
		{weeklySense, `(?:ogni|tutti i|tutte le|il|la) {day}(?: {pre})? {at}`},
		{monthlySense, `(?:ogni mese|tutti i mesi) il (?:giorno )?{date} {at}`}, {monthlySense, `il {date} (?:di ogni|del) mese {at}`},
		{intervalSense, `ogni {n} {unit}`}, {intervalSense, `ogni {unit}`}, {intervalSense, `ogni (?P<halved>mezz'ora)`},
	},
}
