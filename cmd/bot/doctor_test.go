package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// doctorSays runs `bot doctor` with a data folder and a homeserver.
func doctorSays(t *testing.T, data, homeserver string) (code int, report string) {
	t.Helper()
	text := "data: " + data + "\n"
	if homeserver != "" {
		text += "matrix: {homeserver: \"" + homeserver + "\", user: \"@bot:example.org\", password: p, owners: [\"@you:example.org\"]}\n"
	}
	text += strings.TrimPrefix(rehearsing, "data: ./data\n")
	return runBot(t, "", "doctor", "--config", configFile(t, text))
}

// TestDoctorTriesTheFolder: a data folder that cannot be made is an error, one that can be is
// not, and trying leaves nothing behind.
func TestDoctorTriesTheFolder(t *testing.T) {
	if code, report := doctorSays(t, "/proc/ro/data", ""); code != exitFailed || !strings.Contains(report, "✗ files    the data folder /proc/ro/data cannot be made") {
		t.Errorf("exit code %d:\n%s", code, report)
	}
	parent := t.TempDir()
	if code, report := doctorSays(t, filepath.Join(parent, "a", "b"), ""); code != 0 || !strings.Contains(report, "is not there yet") {
		t.Errorf("exit code %d:\n%s", code, report)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestDoctorKnowsMatrix: a web server that answers JSON is no homeserver.
func TestDoctorKnowsMatrix(t *testing.T) {
	for _, answer := range []string{`{"hello": "world"}`, `{"versions": []}`, `{"versions": ["1.0"]}`, `[]`, `<html>`} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		code, report := doctorSays(t, "./data", web.URL)
		web.Close()
		if code != exitFailed || !strings.Contains(report, "✗ matrix   "+web.URL+" answers, but not as a Matrix homeserver") || strings.Contains(report, "✓ matrix   homeserver") {
			t.Errorf("%s: exit code %d:\n%s", answer, code, report)
		}
	}
}
