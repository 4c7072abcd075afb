package test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reverie/internal/test/expect"
)

// TestMetrics: the running bot counts what it does, without names, and Prometheus understands it.
func TestMetrics(t *testing.T) {
	bot, you, room, _ := newConversation(t)
	expect.Equal(t, ask(t, you, room, "hello").Encrypted, true)
	if strings.Contains(bot.log.String(), "msg=metrics") {
		t.Error("metrics are served though nobody asked for it")
	}
	config := expect.Must(os.ReadFile(bot.config))(t)
	expect.OK(t, os.WriteFile(bot.config, append(config, "metrics: {listen: \"127.0.0.1:0\"}\n"...), 0o600))
	bot.restart(t, "")
	address := regexp.MustCompile(`msg=metrics address=(\S+)`)
	until(t, "the log does not say where the metrics are", func() bool { return address.MatchString(bot.log.String()) })
	url := address.FindStringSubmatch(bot.log.String())[1]
	read := func() string {
		resp := expect.Must(http.Get(url))(t)
		defer resp.Body.Close()
		return string(expect.Must(io.ReadAll(resp.Body))(t))
	}
	ask(t, you, room, "Remember that my sister Jana lives in Brno.")
	ask(t, you, room, "!status")
	text := read()
	expect.Has(t, text, "reverie_messages_received_total 2\n", `reverie_replies_total{result="answered"} 1`+"\n",
		`reverie_replies_total{result="command"} 1`+"\n", "reverie_answer_seconds_count 1\n", "reverie_inbox_messages 0\n",
		"reverie_outbox_messages", "reverie_memory_entries 1\n", `reverie_tool_calls_total{class="memory"} 1`+"\n")
	expect.Lacks(t, text, "reverie_database_bytes 0\n", "reverie_sync_age_seconds 0\n", "reverie_model_answers_total 0\n",
		"localhost", "@", "!", "Brno", "rehearsal", "local\"")
	t.Run("promtool", func(t *testing.T) {
		needs(t, "promtool")
		cmd := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("promtool check metrics: %v\n%s", err, out)
		}
		runs(t, "promtool", "check", "rules", "../deploy/prometheus/alerts.yml")
		runs(t, "promtool", "test", "rules", "../deploy/prometheus/alerts_test.yml")
	})
	t.Run("dashboard and alerts", func(t *testing.T) {
		dashboard := expect.Must(os.ReadFile(filepath.Join("..", "deploy", "prometheus", "grafana.json")))(t)
		var into struct {
			Panels []struct{ Title string }
		}
		expect.OK(t, json.Unmarshal(dashboard, &into))
		alerts := expect.Must(os.ReadFile(filepath.Join("..", "deploy", "prometheus", "alerts.yml")))(t)
		named := regexp.MustCompile(`\b(reverie|process|go)_[a-z_]+`)
		shown := map[string]bool{}
		for _, name := range named.FindAllString(string(dashboard)+string(alerts), -1) {
			shown[name] = true
			if !regexp.MustCompile(`(?m)^` + name + `[ {]`).MatchString(text) {
				t.Errorf("%s is shown or watched, and there is no such figure", name)
			}
		}
		for _, line := range regexp.MustCompile(`(?m)^# TYPE (reverie_\S+)`).FindAllStringSubmatch(text, -1) {
			if name := line[1]; !shown[name] && !shown[name+"_bucket"] {
				t.Errorf("%s is on no panel", name)
			}
		}
	})
}
