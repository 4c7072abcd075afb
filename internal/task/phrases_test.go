package task

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestPhrases: at() is Saturday, 2026-11-21 09:14:30 in Berlin.
func TestPhrases(t *testing.T) {
	for _, tt := range []struct{ want, texts string }{
		{"once 2026-11-22T07:00:00+01:00", "tomorrow at 7|tomorrow 7am|Tomorrow at 7:00.|at 7 tomorrow|tomorrow morning at 7|morgen um 7|morgen früh um 7 Uhr|Morgen um 7:00 Uhr|demain à 7h|demain à 7 heures|demain matin à 7h|mañana a las 7|mañana por la mañana a las 7|mañana a las 7 de la mañana|domani alle 7|domani mattina alle 7|明天7点|明天早上7点|明天早上七点|明早7点|明日7時|明日の朝7時|明日の午前7時に|明日７時"},
		{"once 2026-11-22T07:30:00+01:00", "tomorrow at half past 7|tomorrow at 7.30|morgen um halb 8|morgen um halb acht|demain à 7h30|demain à 7 h 30|demain à 7 heures et demie|mañana a las 7 y media|mañana a las siete y media|domani alle 7 e mezza|domani alle 7.30|明天7点半|明天7点30分|明天上午7:30|明日7時半|明日7時30分に"},
		{"once 2026-11-23T18:00:00+01:00", "the day after tomorrow at 6 pm|day after tomorrow at 6 in the evening|übermorgen um 18 Uhr|übermorgen Abend um 6|après-demain à 18h|après-demain à 6h du soir|pasado mañana a las 18|pasado mañana a las 6 de la tarde|dopodomani alle 18|dopodomani sera alle 6|后天18点|后天下午6点|明後日18時|あさって午後6時"},
		{"once 2026-11-21T20:00:00+01:00", "today at 8 pm|tonight at 8|this evening at 8|at 8 p.m. today|heute um 20 Uhr|heute Abend um 8|heute um 8 Uhr abends|aujourd'hui à 20h|ce soir à 8h|hoy a las 20:00|hoy a las 8 de la noche|oggi alle 20|stasera alle 8|今天晚上8点|今晚8点|今天20点|今日20時|今夜8時|今日の夜8時"},
		{"once 2026-11-21T09:34:30+01:00", "in 20 minutes|20 minutes from now|in twenty minutes|in 20 Minuten|in zwanzig Minuten|dans 20 minutes|dans vingt minutes|en 20 minutos|dentro de 20 minutos|tra 20 minuti|fra venti minuti|20分钟后|二十分钟之后|20分後|20分後に|二十分後"},
		{"once 2026-11-21T09:15:00+01:00", "in 30 seconds|30 seconds from now|in thirty secs|in 30 Sekunden|in dreißig Sekunden|dans 30 secondes|en 30 segundos|tra 30 secondi|30秒后|30秒後"},
		{"once 2026-11-21T10:14:30+01:00", "in an hour|in 1 hour|in einer Stunde|dans une heure|en una hora|tra un'ora|1小时后|一个小时后|1時間後"},
		{"once 2026-11-21T09:44:30+01:00", "in half an hour|in einer halben Stunde|dans une demi-heure|en media hora|tra mezz'ora|半小时后|半个小时后|30分後"},
		{"once 2026-12-05T09:14:30+01:00", "in two weeks|in 14 days|in zwei Wochen|dans 2 semaines|en dos semanas|tra due settimane|两周后|2週間後"},
		{"once 2026-11-23T09:00:00+01:00", "on Monday at 9|Monday at 9|at 9 on Monday|am Montag um 9|Montag um neun|lundi à 9h|ce lundi à 9h|el lunes a las 9|lunedì alle 9|周一9点|星期一上午9点|月曜日9時|月曜の朝9時に"},
		{"once 2026-11-28T09:00:00+01:00", "on Saturday at 9|am Samstag um 9|samedi à 9h|el sábado a las 9|sabato alle 9|周六9点|土曜日9時"},
		{"once 2026-11-21T12:00:00+01:00", "today at noon|heute Mittag|heute um 12|aujourd'hui à midi|hoy al mediodía|oggi a mezzogiorno|今天正午|今天中午12点|今日正午"},
		{"daily 08:30", "every day at 8:30|daily at 8.30 am|at 8:30 every day|every morning at 8:30|jeden Tag um 8:30 Uhr|täglich um halb neun|jeden Morgen um halb 9|tous les jours à 8h30|chaque matin à 8h30|tous les matins à 8h30|todos los días a las 8:30|cada día a las 8 y media|ogni giorno alle 8:30|ogni mattina alle 8 e mezza|每天8点半|每天早上8:30|毎日8時半|毎朝8時30分に"},
		{"weekly mon 09:00", "every Monday at 9|each monday at 9am|every Monday morning at 9|at 9 every monday|on Mondays at 9|jeden Montag um 9|montags um 9 Uhr|chaque lundi à 9h|tous les lundis à 9h|le lundi à 9 heures|todos los lunes a las 9|cada lunes a las nueve|los lunes a las 9|ogni lunedì alle 9|il lunedì alle 9|每周一9点|每星期一上午9点|每週一9點|毎週月曜日9時|毎週月曜の朝9時に"},
		{"weekly sun 20:00", "every Sunday at 8pm|jeden Sonntag Abend um 8|chaque dimanche à 20h|todos los domingos a las 8 de la noche|ogni domenica alle 20|每周日晚上8点|毎週日曜日午後8時"},
		{"monthly 1 12:00", "every month on the 1st at noon|monthly on the 1st at 12:00|on the 1st of every month at 12|jeden Monat am 1. um 12 Uhr|am 1. jedes Monats um 12|chaque mois le 1er à midi|cada mes el 1 a las 12|el día 1 de cada mes a las 12|ogni mese il 1° alle 12|il 1 di ogni mese alle 12|每月1号12点|毎月1日12時"},
		{"cron 0 7 * * mon-fri", "on weekdays at 7|every weekday at 7am|werktags um 7 Uhr|en semaine à 7h|de lunes a viernes a las 7|nei giorni feriali alle 7|工作日7点|平日7時"},
		{"interval 1800", "every 30 minutes|every half hour|every thirty minutes|alle 30 Minuten|alle halbe Stunde|toutes les 30 minutes|toutes les demi-heures|cada 30 minutos|cada media hora|ogni 30 minuti|ogni mezz'ora|每30分钟|每隔30分钟|每半小时|30分ごと|30分おきに"},
		{"interval 3600", "every hour|hourly|jede Stunde|chaque heure|toutes les heures|cada hora|ogni ora|每小时|1時間ごとに|毎時間"},
	} {
		for text := range strings.SplitSeq(tt.texts, "|") {
			s, err := Phrase(text, at(t), berlin(t))
			if got := brief(s); err != nil || got != tt.want {
				t.Errorf("%q: %s, %v; want %s", text, got, err, tt.want)
			}
		}
	}
}

// brief is a schedule without what is empty.
func brief(s Schedule) string {
	parts := []string{s.Type, s.DayOfWeek}
	if s.DayOfMonth != 0 {
		parts = append(parts, strconv.Itoa(s.DayOfMonth))
	}
	parts = append(parts, s.At, s.Expression)
	if s.IntervalSeconds != 0 {
		parts = append(parts, strconv.Itoa(s.IntervalSeconds))
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// TestPhrasesRefuse: what is not understood as a whole, or only with a guess, is an
// error.
// Holds T3.
func TestPhrasesRefuse(t *testing.T) {
	for _, text := range []string{
		"", "soon", "tomorrow", "tomorrow at", "tomorrow at 25", "tomorrow at 7:75", "tomorrow at 13 am", "at noonish", "next Monday at 9", "every other day at 9", "every second Monday at 9",
		"tomorrow at 7 or 8", "not tomorrow at 7", "tomorrow at 7 unless it rains", "in 0 minutes", "in minus 5 minutes", "in a few minutes", "in 1.5 hours", "every 5 seconds", "every second", "alle 30 Sekunden", "every 0 minutes",
		"today at 7", "tonight at 3", "this morning at 8", "every month on the 32nd at 9", "every monday", "tomorrow evening at 8 am",
		"morgen", "morgen um", "jeden zweiten Montag um 9", "irgendwann morgen um 7", "heute um 7", "morgen um 25 Uhr", "nächste Woche", "alle paar Minuten",
		"demain", "demain à 27h", "un lundi sur deux à 9h", "mañana", "mañana a las 25", "cada dos lunes a las 9", "domani", "domani alle 26", "明天", "明天25点", "隔周一9点", "明日", "明日25時", "隔週月曜日9時",
		"in 9999999999999999999999 minutes", "in 999999 weeks", strings.Repeat("tomorrow at 7 ", 100),
	} {
		if s, err := Phrase(text, at(t), berlin(t)); err == nil {
			t.Errorf("%q is read as %s", text, brief(s))
		}
	}
	_, err := Phrase("irgendwann", at(t), berlin(t))
	if err == nil || !strings.Contains(err.Error(), "for example") {
		t.Errorf("no example: %v", err)
	}
	// A time that clocks leave out is nobody's wish.
	spring := time.Date(2027, 3, 27, 12, 0, 0, 0, berlin(t))
	if s, err := Phrase("morgen um 2:30", spring, berlin(t)); err == nil {
		t.Errorf("a time that there is not is read as %s", brief(s))
	}
}

// FuzzPhrase: whatever is understood means the same in every language that
// understands it, lies in the future and is in its final form.
func FuzzPhrase(f *testing.F) {
	for _, s := range []string{"tomorrow at 7", "jeden Montag um 9", "demain à 7h30", "mañana a las 7", "ogni lunedì alle 9", "明天7点", "20分後", "in 20 minutes", "每月31号23点", "half past 12 pm"} {
		f.Add(s)
	}
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Skip(err)
	}
	now := time.Date(2026, 11, 21, 9, 14, 30, 5, loc)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Phrase(text, now, loc)
		if err != nil {
			return
		}
		if same, err := s.Validate(now, loc); err != nil || same != s {
			t.Errorf("%q: %+v is not in its final form: %v", text, s, err)
		}
		if next, ok := s.Next(now, now, loc); !ok || !next.After(now) {
			t.Errorf("%q: %+v never falls due", text, s)
		}
		read := map[string]string{}
		for _, one := range tongues() {
			if s, err := phraseIn([]*tongue{one}, text, now, loc); err == nil {
				read[brief(s)] = one.name
			}
		}
		if len(read) > 1 {
			t.Errorf("%q is read in more than one way: %v", text, read)
		}
	})
}
