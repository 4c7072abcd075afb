package session

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"reverie/internal/i18n"
)

// TestSpans: how long something takes is said with the plurals of each language.
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
		if got := i18n.Span(c.d).In(say); got != c.want {
			t.Errorf("%s, %v: got %q, want %q", c.language, c.d, got, c.want)
		}
	}
	french := func(key string, fill ...string) string { return (*Messages)(nil).In("fr", key, fill...) }
	if got, want := i18n.New("why.helper_time", "time", i18n.Span(90*time.Second)).In(french), "son temps était écoulé : 1 minute 30 secondes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFormsOfAnOwner: a form for one that does not say the number is said of 1 only, also
// where a language says 0 as it says one (the built-in one is said then); and a language may have that form where English
// needs none.
func TestFormsOfAnOwner(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "messages"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "messages", "fr.txt"), []byte("connection.rooms_one: un seul salon\nwhy.merged_one: un fondu\ntime.days_one: {count} journée\n"), 0o600))
	m := OpenMessages(dir, nil, "fr")
	for count, want := range map[string][2]string{"0": {"0 salon", "0 journée"}, "1": {"un seul salon", "1 journée"}, "2": {"2 salons", "2 jours"}} {
		if got := m.In("fr", "connection.rooms", "count", count); got != want[0] {
			t.Errorf("%s: got %q, want %q", count, got, want[0])
		}
		if got := m.In("fr", "time.days", "count", count); got != want[1] {
			t.Errorf("%s: got %q, want %q", count, got, want[1])
		}
	}
	equal(t, m.In("fr", "why.merged", "count", "1"), "un fondu")
	if p := m.Problems(); len(p) > 0 {
		t.Errorf("problems %v", p)
	}
}
