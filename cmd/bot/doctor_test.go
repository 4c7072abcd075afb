package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/store"
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

// TestDoctorTriesTheFolder: a data folder that cannot be made is an error.
func TestDoctorTriesTheFolder(t *testing.T) {
	if code, report := doctorSays(t, "/proc/ro/data", ""); code != exitFailed || !strings.Contains(report, "/proc/ro") {
		t.Errorf("exit code %d:\n%s", code, report)
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

// TestDoctorNamesTemplates: one that cannot be used, with what to write.
func TestDoctorNamesTemplates(t *testing.T) {
	data := t.TempDir()
	must(t, store.WriteFile(filepath.Join(data, "DREAM_TASK_PROMPT.txt"), []byte("What is done?\n{tasks}\n")))
	_, report := doctorSays(t, data, "")
	for _, want := range []string{
		"the text that came with the program is used in the place of DREAM_TASK_PROMPT.txt", "DREAM_TASK_PROMPT.txt, line 2: {tasks} is no placeholder there; write {content}",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("doctor does not say %q:\n%s", want, report)
		}
	}
}
