package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"reverie/internal/i18n"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const ada = "@ada:example.org"

// edited returns a store with the file of ada.
func edited(t *testing.T, text string) Store {
	t.Helper()
	s := Store{Dir: t.TempDir(), Location: time.UTC}
	expect.OK(t, os.MkdirAll(filepath.Dir(s.path(ada)), 0o700))
	expect.OK(t, os.WriteFile(s.path(ada), []byte(text), 0o600))
	return s
}

// TestRead: lines that do not count are named, and the others count.
func TestRead(t *testing.T) {
	s := edited(t, "\ufeff# mine\r\n\r\nName:  Ada\tLovelace \r\nFORM of  address: Countess: Ada\nlikes tea\ncolour: blue\ntime zone: Mars/Base\n"+
		"name: Eve\nplace:\ngoals: "+strings.Repeat("é", maxValue)+"\ninterests: "+strings.Repeat("é", maxValue+1)+"\noccupation: engine\u202emen\x00")
	values, _, err := s.Read(ada)
	expect.OK(t, err)

	expect.Equal(t, values["name"], "Ada Lovelace")
	expect.Equal(t, values["form of address"], "Countess: Ada")
	expect.Equal(t, values["occupation"], "enginemen")
	expect.Equal(t, values[Zone]+values["place"]+values[""], "")
	var faults []string
	for _, f := range s.Problems() {
		faults = append(faults, f.String())
	}
	for i, want := range []string{":5: Name a field, then", ":6: Name a field, then", ":7: There is no such time zone", ":8: An earlier line", ":11: The value is too long"} {
		expect.False(t, i >= len(faults) || !strings.HasPrefix(faults[i], RelativePath(ada)+want), "fault %d: got %q, want %q", i, faults, want)
	}
	expect.Equal(t, len(faults), 5)
	expect.Lacks(t, strings.Join(faults, "\n"), "blue", "tea", "Mars", "Eve") // the log has them
}

// TestSet: a change keeps all other lines and comments, and the file stays private.
func TestSet(t *testing.T) {
	s := edited(t, "# mine\r\nname: Ada\nnonsense\ntime zone: Mars\n\n# last\ntime zone: Venus\ngoals: tea")
	for _, c := range []struct{ field, value, stored, file string }{
		{Zone, "berlin", "Europe/Berlin", "# mine\r\nname: Ada\nnonsense\ntime zone: Europe/Berlin\n\n# last\ngoals: tea\n"},
		{"place", "Ber\nlin\nname: Eve", "Ber lin name: Eve", "# mine\r\nname: Ada\nnonsense\ntime zone: Europe/Berlin\n\n# last\ngoals: tea\nplace: Ber lin name: Eve\n"},
		{"name", " ", "", "# mine\r\nnonsense\ntime zone: Europe/Berlin\n\n# last\ngoals: tea\nplace: Ber lin name: Eve\n"},
	} {
		expect.Equal(t, expect.Must(s.Set(ada, c.field, c.value))(t), c.stored)
		expect.Equal(t, string(expect.Must(os.ReadFile(s.path(ada)))(t)), c.file)
	}
	expect.Equal(t, expect.Must(os.Stat(s.path(ada)))(t).Mode().Perm(), os.FileMode(0o600))
	for field, value := range map[string]string{Zone: "Local", "name": strings.Repeat("a", maxValue+1), "colour": "blue"} {
		_, err := s.Set(ada, field, value)
		expect.False(t, err == nil || !i18n.FromError(err).Translatable(), "%s: %v", field, err)
	}
	expect.OK(t, s.Forget(ada))
	expect.OK(t, s.Forget(ada))
	values, _, err := s.Read(ada)
	expect.False(t, err != nil || values["goals"] != "", "%v, %v", values, err)
	expect.Equal(t, expect.Must(s.Set(ada, "name", "Ada"))(t), "Ada")
	expect.Has(t, string(expect.Must(os.ReadFile(s.path(ada)))(t)), "# What you say", "name: Ada\n")
}

// TestZoneNames: a time zone may be named by its city and in any case, and never leads out of the zone files.
func TestZoneNames(t *testing.T) {
	for name, want := range map[string]string{"Europe/Berlin": "Europe/Berlin", "tokyo": "Asia/Tokyo", "europe/berlin": "Europe/Berlin", "new york": "America/New_York",
		"America/Argentina/Buenos Aires": "America/Argentina/Buenos_Aires", "UTC": "UTC"} {
		found := location(name)
		expect.False(t, found == nil || found.String() != want, "%s: %v", name, found)
	}
	for _, name := range []string{"Local", "Atlantis", "../../etc/passwd", "/etc/localtime", "Europe", "Europe/../Europe/Berlin", strings.Repeat("a", 400), "a\x00"} {
		expect.False(t, location(name) != nil, "%s: %v", name, location(name))
	}
}

// TestZoneForReaders: only the person's own direct chat has their time zone.
func TestZoneForReaders(t *testing.T) {
	s := edited(t, "time zone: Asia/Tokyo\n")
	for at, want := range map[trust.Place]string{
		{Room: "!dm", Person: ada, Private: true}:      "Asia/Tokyo",
		{Room: "!dm", Person: ada}:                     "UTC",
		{Room: "!dm", Person: "@bob:x", Private: true}: "UTC",
		{}: "UTC",
	} {
		expect.Equal(t, s.PersonalOrUsualZone(at.Readers()).String(), want)
	}
	expect.OK(t, os.Remove(s.path(ada)))
	expect.OK(t, os.Mkdir(s.path(ada), 0o700)) // cannot be read
	expect.Equal(t, s.PersonalOrUsualZone(trust.PersonReaders(ada)).String(), "UTC")
	_, err := s.Set(ada, "name", "Ada")
	expect.False(t, err == nil, "written over what cannot be read")
	expect.Has(t, s.Problems()[0].String(), RelativePath(ada), "is a directory")
}
