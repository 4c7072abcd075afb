package text

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dates are indexed as terms that are the same in every language. The day of a message has a column of
// its own; dates named in texts and queries are converted to the same terms.

// DateTerms returns the terms of the day t: year, month, day, weekday, and combinations.
func DateTerms(t time.Time) []string {
	y, m, d := t.Date()
	return append(termsOfDate(y, int(m), d), weekdayTerm(int(t.Weekday())))
}

func yearTerm(y int) string         { return "datey" + strconv.Itoa(y) }
func monthTerm(m int) string        { return "datem" + strconv.Itoa(m) }
func dayTerm(d int) string          { return "dated" + strconv.Itoa(d) }
func weekdayTerm(w int) string      { return "datew" + strconv.Itoa(w) }
func yearMonthTerm(y, m int) string { return "date" + strconv.Itoa(y) + "x" + strconv.Itoa(m) }
func fullTerm(y, m, d int) string   { return yearMonthTerm(y, m) + "x" + strconv.Itoa(d) }

// DatesIn returns the terms of the dates in ws: 8 May 2023, May 8th, el 3 de mayo, 2023-05-08,
// 8.5.2023, 5月8日. A year alone counts, a day alone does not. From March to May, April counts too.
func DatesIn(ws []Token) []string {
	var out []string
	add := func(terms ...string) {
		for _, t := range terms {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	var last, at int // the month before, and its index
	for i, w := range ws {
		if m := monthAt(ws, i); m > 0 {
			if last > 0 && last != m && isSpan(ws, at, i) {
				for between := last%12 + 1; between != m; between = between%12 + 1 {
					add(monthTerm(between))
				}
			}
			last, at = m, i
			day, year := dayAndYearBeside(ws, i)
			add(termsOfDate(year, m, day)...)
			continue
		}
		if day, ok := weekdays[w.Text]; ok && !w.Ideo {
			add(weekdayTerm(day))
		}
		if y := smallNumber(w.Text); y >= 1900 && y <= 2100 {
			add(yearTerm(y))
		}
		if strings.Contains(w.Text, "x") && isDigit(rune(w.Text[0])) {
			for _, p := range parseJoinedDate(w.Text) {
				add(termsOfDate(p[0], p[1], p[2])...)
			}
		}
	}
	return out
}

// isSpan reports whether the months ws[from] and ws[to] stand for those between them as well: from March to
// May, between March and May.
func isSpan(ws []Token, from, to int) bool {
	if to-from > 6 {
		return false
	}
	for _, second := range ws[from+1 : to] {
		for _, first := range spans[second.Text] {
			if first == "" || slices.ContainsFunc(ws[max(0, from-3):from], func(w Token) bool { return w.Text == first }) {
				return true
			}
		}
	}
	return false
}

// IsDate reports whether ws[i] is part of a date, and no word of what is told of it.
func IsDate(ws []Token, i int) bool {
	n := smallNumber(ws[i].Text)
	return monthAt(ws, i) > 0 || n >= 1900 && n <= 2100 ||
		n > 0 && n <= 31 && (i > 0 && monthAt(ws, i-1) > 0 || i+1 < len(ws) && monthAt(ws, i+1) > 0)
}

func termsOfDate(year, month, day int) []string {
	var out []string
	if year > 0 {
		out = append(out, yearTerm(year))
	}
	if month > 0 {
		out = append(out, monthTerm(month))
	}
	if day > 0 {
		out = append(out, dayTerm(day))
	}
	if year > 0 && month > 0 {
		out = append(out, yearMonthTerm(year, month))
		if day > 0 {
			out = append(out, fullTerm(year, month, day))
		}
	}
	return out
}

// monthAt returns the month that ws[i] names, 0 if none.
func monthAt(ws []Token, i int) int {
	w := ws[i]
	if w.Ideo {
		if strings.HasPrefix(w.Text, "月") && len(w.Text) == len("月") && i > 0 {
			if m := smallNumber(ws[i-1].Text); m >= 1 && m <= 12 {
				return m
			}
		}
		return 0
	}
	m := months[w.Text]
	if m == 0 || !ambiguousMonths[w.Text] || w.Capital && i > 0 {
		return m
	}
	// Ambiguous words (may, march, short forms) are months next to a number or after "in".
	if i > 0 && (smallNumber(ws[i-1].Text) > 0 || beforeMonth[ws[i-1].Text]) || i+1 < len(ws) && smallNumber(ws[i+1].Text) > 0 {
		return m
	}
	return 0
}

// dayAndYearBeside finds the day and year next to the month ws[i].
func dayAndYearBeside(ws []Token, i int) (day, year int) {
	look := func(j int) {
		if j < 0 || j >= len(ws) {
			return
		}
		switch n := smallNumber(ws[j].Text); {
		case n >= 1900 && n <= 2100 && year == 0:
			year = n
		case n >= 1 && n <= 31 && day == 0 && !(ws[i].Ideo && j == i-1): // that is the month itself
			day = n
		}
	}
	for _, j := range []int{i - 1, i + 1, i + 2} {
		look(j)
	}
	if i >= 2 && (ws[i-1].Text == "de" || ws[i-1].Text == "of") {
		look(i - 2)
	}
	if ws[i].Ideo { // 2023年5月: year, 年, 5, 月
		look(i - 3)
	}
	return day, year
}

// parseJoinedDate parses a token of joined numbers: year first, or last with day and month in both
// possible orders.
func parseJoinedDate(s string) (dates [][3]int) {
	parts := strings.Split(s, "x")
	if len(parts) != 3 {
		return nil
	}
	a, b, c := smallNumber(parts[0]), smallNumber(parts[1]), smallNumber(parts[2])
	if c < 100 && len(parts[2]) == 2 && a <= 31 {
		c += 2000
	}
	valid := func(y, m, d int) {
		if y >= 1900 && y <= 2100 && m >= 1 && m <= 12 && d >= 1 && d <= 31 {
			dates = append(dates, [3]int{y, m, d})
		}
	}
	valid(a, b, c)
	valid(c, b, a)
	if a != b {
		valid(c, a, b)
	}
	return dates
}

// smallNumber parses up to four digits; -1 = not a number.
func smallNumber(s string) int {
	if len(s) == 0 || len(s) > 4 || !isDigit(rune(s[0])) {
		return -1
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// AsksWhen reports whether ws ask for a time.
func AsksWhen(ws []Token) bool {
	for i, w := range ws {
		switch {
		case whenWords[w.Text] && (w.Ideo || i < 4):
			return true
		case i > 0 && timeUnits[w.Text] != 0 && whichWords[ws[i-1].Text]:
			return true
		}
	}
	return false
}

// MentionsTime reports whether ws mention a time: today, last week, in May.
func MentionsTime(ws []Token, dates []string) bool {
	if len(dates) > 0 {
		return true
	}
	for _, w := range ws {
		if timeWords[w.Text] || timeUnits[w.Text] != 0 {
			return true
		}
	}
	return false
}

// RelativeSpan resolves relative dates in a query: yesterday, last week, two months ago. Without
// one, ok is false.
func RelativeSpan(ws []Token, now time.Time) (from, to time.Time, ok bool) {
	if now.IsZero() {
		return from, to, false
	}
	y, m, d := now.Date()
	today := time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	for i, w := range ws {
		if back, found := relativeDays[w.Text]; found {
			from = today.AddDate(0, 0, -back)
			return from, from.AddDate(0, 0, 1), true
		}
		if day, found := weekdays[w.Text]; found && !w.Ideo {
			back := (int(today.Weekday())-day+6)%7 + 1
			from = today.AddDate(0, 0, -back)
			return from, from.AddDate(0, 0, 1), true
		}
		if first := seasons[w.Text]; first != 0 {
			from = seasonStart(ws, i, first, today)
			return from, from.AddDate(0, 3, 0), true
		}
		if unit := timeUnits[w.Text]; unit != 0 && offsetSign(ws, i) == 0 {
			if from, to, ok = unitSpan(ws, i, unit, today); ok {
				return from, to, true
			}
		}
	}
	return from, to, false
}

// SpanTerms returns the terms of the days between from and to. If there are many days, it returns
// terms of the months.
func SpanTerms(from, to time.Time) []string {
	var out []string
	step := func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }
	name := func(t time.Time) string { y, m, d := t.Date(); return fullTerm(y, int(m), d) }
	if to.Sub(from) > 40*24*time.Hour {
		from = from.AddDate(0, 0, 1-from.Day())
		step = func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }
		name = func(t time.Time) string { y, m, _ := t.Date(); return yearMonthTerm(y, int(m)) }
	}
	for t := from; t.Before(to); t = step(t) {
		out = append(out, name(t))
	}
	return out
}

func unitSpan(ws []Token, i int, unit byte, today time.Time) (from, to time.Time, ok bool) {
	past, this, ago, n := false, false, false, 0
	for j := max(0, i-3); j < min(len(ws), i+3); j++ {
		t := ws[j].Text
		near := j >= i-2 && j <= i+1
		past = past || near && pastWords[t]
		this = this || near && j < i && thisWords[t]
		ago = ago || agoWords[t]
		if v := parseCount(t); v > 0 && j < i {
			n = v
		}
	}
	switch {
	case ago && n > 0:
		back := map[byte][2]int{'d': {n, 1}, 'w': {7 * n, 4}, 'm': {30 * n, 16}, 'y': {365 * n, 190}}[unit]
		mid := today.AddDate(0, 0, -back[0])
		return mid.AddDate(0, 0, -back[1]), mid.AddDate(0, 0, back[1]+1), true
	case !past && !this:
		return from, to, false
	}
	y, m, _ := today.Date()
	monday := today.AddDate(0, 0, -(int(today.Weekday())+6)%7)
	step := 0
	if past {
		step = -1
	}
	switch unit {
	case 'w':
		from = monday.AddDate(0, 0, 7*step)
		return from, from.AddDate(0, 0, 7), true
	case 'm':
		from = time.Date(y, m, 1, 0, 0, 0, 0, today.Location()).AddDate(0, step, 0)
		return from, from.AddDate(0, 1, 0), true
	case 'y':
		from = time.Date(y+step, 1, 1, 0, 0, 0, 0, today.Location())
		return from, from.AddDate(1, 0, 0), true
	}
	return from, to, false
}

// seasonStart is the first day of the season ws[i], of three months from month first on: of the year
// named beside it, or of the last one that has begun; with "last", of one that is over.
func seasonStart(ws []Token, i, first int, today time.Time) time.Time {
	year, over := today.Year(), false
	start := func() time.Time { return time.Date(year, time.Month(first), 1, 0, 0, 0, 0, today.Location()) }
	for j := max(0, i-2); j < min(len(ws), i+3); j++ {
		if y := smallNumber(ws[j].Text); y >= 1900 && y <= 2100 {
			year = y
			return start()
		}
		over = over || pastWords[ws[j].Text]
	}
	for start().After(today) || over && start().AddDate(0, 3, 0).After(today) {
		year--
	}
	return start()
}

// DaysAway resolves "two weeks before" and "the day after" in a query: at least from and at most to days lie
// between what it names and the time it asks for; before it they are negative.
func DaysAway(ws []Token) (from, to int, ok bool) {
	for i, w := range ws {
		sign := offsetSign(ws, i)
		if timeUnits[w.Text] == 0 || sign == 0 {
			continue
		}
		n := 1
		for j := max(0, i-2); j < i; j++ {
			n = cmp.Or(parseCount(ws[j].Text), n)
		}
		span := map[byte][2]int{'d': {1, 0}, 'w': {7, 3}, 'm': {30, 10}, 'y': {365, 60}}[timeUnits[w.Text]]
		return sign*n*span[0] - span[1], sign*n*span[0] + span[1], true
	}
	return 0, 0, false
}

// offsetSign is -1 if "before" follows the unit ws[i], 1 if "after" does.
func offsetSign(ws []Token, i int) int {
	switch {
	case i+1 == len(ws):
	case beforeWords[ws[i+1].Text]:
		return -1
	case afterWords[ws[i+1].Text]:
		return 1
	}
	return 0
}

func parseCount(s string) int {
	if n, ok := numberWords[s]; ok {
		return n
	}
	if n := smallNumber(s); n > 0 && n < 100 {
		return n
	}
	return 0
}

// Words for dates and times, of all languages together.
var (
	months          = wordNumbers("month", 1)
	ambiguousMonths = foldedSet("doubtful_month")
	beforeMonth     = foldedSet("before_month")
	weekdays        = wordNumbers("weekday", 0)
	relativeDays    = wordNumbers("day_back", 0)
	timeUnits       = units()
	pastWords       = foldedSet("past")
	thisWords       = foldedSet("this")
	agoWords        = foldedSet("ago")
	whenWords       = foldedSet("when")
	whichWords      = foldedSet("which")
	timeWords       = foldedSet("time")
	numberWords     = wordNumbers("number", 1)
	beforeWords     = foldedSet("before")
	afterWords      = foldedSet("after")
	seasons         = firstMonths()
	spans           = spanWords()
)

// spanWords maps the word between two months to those before the first; "" = it needs none.
func spanWords() map[string][]string {
	out := map[string][]string{}
	for _, item := range All("span") {
		first, second, _ := strings.Cut(item, "=")
		out[foldWord(second)] = append(out[foldWord(second)], foldWord(first))
	}
	return out
}

// wordNumbers maps the words of a list to numbers: the first item is first, the next first+1, ….
func wordNumbers(name string, first int) map[string]int {
	out := map[string]int{}
	for _, language := range Languages() {
		for i, item := range Words(language, name) {
			for w := range strings.FieldsSeq(item) {
				out[foldWord(w)] = first + i
				out[Unaccented(foldWord(w))] = first + i
			}
		}
	}
	return out
}

func foldedSet(name string) map[string]bool {
	out := map[string]bool{}
	for _, w := range All(name) {
		out[foldWord(w)] = true
		out[Unaccented(foldWord(w))] = true
	}
	return out
}

// firstMonths maps words for seasons to their first month.
func firstMonths() map[string]int {
	out := wordNumbers("season", 1)
	for w, n := range out {
		out[w] = 3 * n
	}
	return out
}

// units maps words for units of time to d, w, m or y.
func units() map[string]byte {
	out := map[string]byte{}
	for _, item := range All("time_unit") {
		unit, forms, _ := strings.Cut(item, "=")
		for w := range strings.FieldsSeq(forms) {
			out[foldWord(w)] = unit[0]
			if w != "año" && w != "años" { // without the tilde it is another word
				out[Unaccented(foldWord(w))] = unit[0]
			}
		}
	}
	return out
}
