package settings

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	reverie "reverie"
	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

// Every language has every sentence with the same placeholders, and no others.
// Holds M69.
func TestMessageFiles(t *testing.T) {
	languages := Languages()
	expect.False(t, !slices.Equal(languages, []string{"de", "en", "es", "fr", "it", "ja", "zh"}), "languages %q", languages)
	for _, l := range languages {
		f := builtin(l)
		for _, p := range f.faults {
			t.Error(p)
		}
		for key, n := range map[string]int{"time.weekdays": 7, "time.days_short": 7} {
			got := len(strings.Fields(f.text[key]))
			expect.False(t, got != n, "%s.txt: %s has %d words, want %d", l, key, got, n)
		}
		if l == english {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(i18n.Source())) {
			one := strings.HasSuffix(key, i18n.One) && f.text[strings.TrimSuffix(key, i18n.One)+i18n.More] != "" && (l == "ja" || l == "zh")
			expect.False(t, f.text[key] == "" && !one, "%s.txt: %s is missing", l, key)
		}
	}
}

var (
	// notProse are the parts of a sentence that are the same in every language.
	notProse = regexp.MustCompile("`[^`]*`|\\{[a-z_]+\\}")
	letters  = regexp.MustCompile(`\p{L}`)
	// sameInEnglish are sentences that a language says in the words of English.
	sameInEnglish = map[string]string{"status.messages_more": "fr", "count.messages_more": "fr", "time.minutes_one": "fr", "time.minutes_more": "fr",
		"why.questions_one": "fr", "why.questions_more": "fr", "approve.no": "es it"}
	// endsOtherwise are sentences that end differently: they are part of another sentence.
	endsOtherwise = map[string]string{"task.for": "ja zh", "time.days_short": "fr"}
)

// TestMessagesAreTranslated: each language says what English says, at about its length and with its punctuation.
func TestMessagesAreTranslated(t *testing.T) {
	width := func(text string) (n int) {
		for _, r := range text {
			if n++; r >= 0x2E80 { // Chinese and Japanese letters say about twice as much
				n++
			}
		}
		return n
	}
	ending := func(text string) rune {
		last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(notProse.ReplaceAllString(text, "x"), "*_"))
		if i := strings.IndexRune("。：？）］", last); i >= 0 {
			return rune(".:?)]"[i/len("。")])
		}
		if unicode.IsPunct(last) {
			return last
		}
		return 'x'
	}
	for _, l := range Languages() {
		raw := string(expect.Must(fs.ReadFile(reverie.Data, "messages/"+l+".txt"))(t))
		expect.False(t, strings.Contains(raw, " \n"), "%s.txt: a line ends in a space", l)
		for key, text := range builtin(l).text {
			prose := notProse.ReplaceAllString(text, "")
			expect.False(t, strings.ContainsAny(prose, "\"’") || strings.Contains(prose, "...") || strings.Contains(text, "  "), "%s.txt: %s: write “ ”, ', … and single spaces: %s", l, key, text)
			english, _ := sourceText(key)
			if l == "en" {
				continue
			}
			n, limit := width(text), width(english)
			expect.False(t, n > limit*8/5+12, "%s.txt: %s is too long: %s", l, key, text)
			expect.False(t, n < limit*2/5-4, "%s.txt: %s says less than English: %s", l, key, text)
			expect.False(t, text == english && letters.MatchString(prose) && !strings.Contains(sameInEnglish[key], l), "%s.txt: %s is English: %s", l, key, text)
			expect.False(t, ending(text) != ending(english) && !strings.Contains(endsOtherwise[key], l), "%s.txt: %s ends with another sign than %q: %s", l, key, english, text)
		}
	}
}

// A room gets the owner's sentence in its language, else the built-in one, else English; faults in
// a file are reported.
// Holds M69.
func TestMessages(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.Mkdir(filepath.Join(dir, "messages"), 0o700))
	db, err := storetest.Open(t, filepath.Join(dir, "bot.db"))
	expect.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	m := OpenMessages(dir, db, "de")
	write := func(text string) {
		t.Helper()
		expect.OK(t, os.WriteFile(filepath.Join(dir, "messages", "de.txt"), []byte(text), 0o600))
	}
	said := func(room, key string, fill ...string) string { return m.Text(t.Context(), room, key, fill...) }
	german := builtin("de").text["stop.done"]
	got := said("!r", "stop.done")
	expect.False(t, got != german || got == "Stopped.", "got %q", got)
	write("# mine\nstop.done: Schluss.\\nAus.\nhelp.stop: hält an\n")
	expect.Equal(t, said("!r", "stop.done"), "Schluss.\nAus.")
	write("# mine\nhelp.stop: hält an\n") // it is read again
	expect.Equal(t, said("!r", "stop.done"), german)
	expect.Equal(t, said("!r", "help.stop"), "hält an")
	expect.OK(t, (Store{db}).Put(t.Context(), "!french", Language, "fr", "@you:example.org", time.Now()))
	expect.Equal(t, said("!french", "stop.done"), builtin("fr").text["stop.done"])
	other := OpenMessages(dir, nil, "pt")
	expect.Equal(t, other.Text(t.Context(), "!r", "stop.done"), "Stopped.")
	problems := fmt.Sprint(other.Problems())
	expect.False(t, !strings.Contains(problems, "pt.txt: is missing"), "problems %s", problems)
	expect.Equal(t, (*Messages)(nil).Text(t.Context(), "!r", "stop.done"), "Stopped.")
}

// TestOwnerMessageFile: faults are reported with their line, and the built-in sentence is used instead.
func TestOwnerMessageFile(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.Mkdir(filepath.Join(dir, "messages"), 0o700))
	german := builtin("de").text
	for name, c := range map[string]struct {
		file, key, says string
		told            []string
	}{
		"a missing key":         {"# mine\n", "stop.done", german["stop.done"], nil},
		"windows line ends":     {"\ufeff# mine\r\nstop.done: Aus.\r\n", "stop.done", "Aus.", nil},
		"an unknown place":      {"stop.done: Aus, {wer}.\n", "stop.done", german["stop.done"], []string{"de.txt:1: stop.done must have these places, each as it is, and no others: []"}},
		"a place too many":      {"\ncommand.unknown: {name} von {wer}?\n", "command.unknown", german["command.unknown"], []string{"de.txt:2: command.unknown must have these places"}},
		"a place too few":       {"command.unknown: Wie?\n", "command.unknown", german["command.unknown"], []string{"de.txt:1: command.unknown must have these places"}},
		"an unknown key":        {"stop.dune: Aus.\n", "stop.done", german["stop.done"], []string{"de.txt:1: nothing is called stop.dune"}},
		"no key":                {"Aus.\n", "stop.done", german["stop.done"], []string{"de.txt:1: is no sentence"}},
		"a sentence twice":      {"stop.done: Aus.\nstop.done: zweimal\n", "stop.done", "Aus.", []string{"de.txt:2: stop.done stands there twice"}},
		"Latin-1":               {"stop.done: Schlu\xdf.\nstop.nothing: Nichts.\n", "stop.nothing", german["stop.nothing"], []string{"de.txt: is not UTF-8 text"}},
		"UTF-16 without a mark": {"s\x00t\x00o\x00p\x00\n\x00x\x00", "stop.done", german["stop.done"], []string{"de.txt: is not UTF-8 text"}},
	} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, "messages", "de.txt"), []byte(c.file), 0o600))
		m := OpenMessages(dir, nil, "de")
		got := m.Text(t.Context(), "!r", c.key)
		expect.False(t, got != c.says, "%s: says %q, want %q", name, got, c.says)
		told := m.Problems()
		if len(told) != len(c.told) {
			t.Errorf("%s: told %v, want %q", name, told, c.told)
			continue
		}
		for i, want := range c.told {
			expect.False(t, !strings.Contains(told[i].String(), want), "%s: told %q, want %q", name, told[i], want)
		}
	}
}

// FuzzMessages: each line of a file is a comment, a valid sentence, or reported.
func FuzzMessages(f *testing.F) {
	f.Add("# mine\nstop.done: Aus.\nstop.done: zwei\ncommand.unknown: {name}\n\n: x\n")
	f.Add("\ufeffstop.done: a\\nb\r\nverify.how: - x\xff\n")
	f.Add("stop.done: 止めました。\n")
	f.Fuzz(func(t *testing.T, source string) {
		got := parseMessages("x.txt", source)
		lines := strings.Split(strings.TrimPrefix(source, "\ufeff"), "\n")
		for key, text := range got.text {
			want, ok := sourceText(key)
			expect.False(t, !ok || text == "" || !samePlaceholders(key, want, text), "%s: %q", key, text)
		}
		for _, p := range got.faults {
			expect.False(t, p.Line < 0 || p.Line > len(lines), "%v, of %d lines", p, len(lines))
		}
		told := len(got.faults) == 1 && len(got.text) == 0 // all of it
		for i, line := range lines {
			line = strings.TrimSpace(line)
			fault := slices.ContainsFunc(got.faults, func(p store.Problem) bool { return p.Line == i+1 })
			key, _, _ := strings.Cut(line, ":")
			expect.False(t, !told && !fault && line != "" && line[0] != '#' && got.text[key] == "", "line %d is lost: %q", i+1, line)
		}
	})
}

// TestSpans: durations use the plural forms of each language.
func TestSpans(t *testing.T) {
	const second, minute, hour, day = time.Second, time.Minute, time.Hour, 24 * time.Hour
	for _, c := range []struct {
		language string
		d        time.Duration
		want     string
	}{
		{"en", 0, "0 seconds"}, {"fr", 0, "0 seconde"}, {"de", 0, "0 Sekunden"}, {"es", 0, "0 segundos"}, {"it", 0, "0 secondi"}, {"ja", 0, "0 秒"}, {"zh", 0, "0 秒"}, {"en", -second, "0 seconds"},
		{"en", second, "1 second"}, {"fr", second, "1 seconde"}, {"it", second, "1 secondo"}, {"ja", second, "1 秒"},
		{"en", 400 * time.Millisecond, "0.4 seconds"}, {"de", 400 * time.Millisecond, "0,4 Sekunden"}, {"fr", 1500 * time.Millisecond, "1,5 seconde"}, {"fr", 2500 * time.Millisecond, "2,5 secondes"},
		{"ja", 1260 * time.Millisecond, "1.3 秒"}, {"en", 9970 * time.Millisecond, "10 seconds"}, {"en", 12400 * time.Millisecond, "12 seconds"},
		{"en", 63 * second, "1 minute 3 seconds"}, {"es", 63 * second, "1 minuto y 3 segundos"}, {"it", 63 * second, "1 minuto e 3 secondi"}, {"zh", 63 * second, "1 分钟 3 秒"},
		{"de", 5 * minute, "5 Minuten"}, {"en", 10*minute + 30*second, "10 minutes"}, {"fr", hour + minute, "1 heure 1 minute"}, {"ja", 2*hour + 5*minute, "2 時間 5 分"},
		{"de", 12 * hour, "12 Stunden"}, {"en", day, "1 day"}, {"de", day + 23*hour, "1 Tag 23 Stunden"}, {"es", 2*day + 5*hour, "2 días"}, {"pt", 400 * day, "400 days"},
	} {
		say := func(key string, fill ...string) string { return (*Messages)(nil).In(c.language, key, fill...) }
		got := i18n.Span(c.d).In(say)
		expect.False(t, got != c.want, "%s, %v: got %q, want %q", c.language, c.d, got, c.want)
	}
	french := func(key string, fill ...string) string { return (*Messages)(nil).In("fr", key, fill...) }
	expect.Equal(t, i18n.New("why.helper_time", "time", i18n.Span(90*time.Second)).In(french), "le temps est écoulé : 1 minute 30 secondes")
}
