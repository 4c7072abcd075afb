package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"reverie/internal/matrix"
)

// diagnosis is what `bot doctor --json` prints, as a program reads it.
type diagnosis struct {
	Findings []struct{ Area, State, What, Remedy string }
	Matrix   matrix.Status
}

// says tells whether a finding in that state has the words.
func (d diagnosis) says(state, words string) bool {
	return slices.ContainsFunc(d.Findings, func(f struct{ Area, State, What, Remedy string }) bool {
		return f.State == state && strings.Contains(f.What, words)
	})
}

// doctor examines the bot beside it; it fails when something is ill.
func (p *process) doctor(t *testing.T) (d diagnosis, healthy bool) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), p.bin, "doctor", "--json", "--config", p.config)
	cmd.Env = append(os.Environ(), "E2E_PASSWORD=the password is not needed again")
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if jerr := json.Unmarshal(out.Bytes(), &d); jerr != nil {
		t.Fatalf("doctor: %v, %v: %s%s", err, jerr, out.Bytes(), errs.Bytes())
	}
	return d, err == nil
}

// TestDoctorBesideTheBot: what an operator is told of a bot that runs, of one
// whose homeserver is gone, and of one that does not run.
func TestDoctorBesideTheBot(t *testing.T) {
	t.Parallel()
	bot, you, room, _ := newConversation(t)
	ask(t, you, room, "hello")

	d, healthy := bot.doctor(t)
	m := d.Matrix
	if !healthy || !d.says("ok", "the bot is running (process ") || !d.says("ok", "; last sync ") || !d.says("ok", "nothing waits") {
		t.Errorf("of a bot that runs: %+v", d.Findings)
	}
	if !m.Running || !m.CrossSigned || !m.IdentityTrusted || len(m.UnknownDevices) != 1 || m.Rooms != 1 || m.Encrypted != 1 || m.Dead+m.Lost+m.Undecryptable != 0 ||
		m.LastSyncAge == nil || *m.LastSyncAge > 90 || m.ClockSkew == nil || *m.ClockSkew < -5 || *m.ClockSkew > 5 || m.Backup == "" {
		t.Errorf("numbers of a bot that runs: %+v", m)
	}
	// The homeserver's own tool has made the account, and left a login behind.
	if !d.says("note", "1 other device that its identity has not signed: shared_secret_registration (left by the tool") {
		t.Errorf("of the account's devices: %+v", d.Findings)
	}
	status := ask(t, you, room, "!status")
	lines := strings.Split(strings.TrimSpace(status.Body), "\n")
	if len(lines) > 8 || !strings.Contains(status.Body, "last sync ") || strings.Contains(status.Body, "bot doctor") {
		t.Errorf("!status:\n%s", status.Body)
	}

	// A homeserver that stands still. The bot is cut off, and says so itself:
	// the doctor reads it in bot.db.
	must(t, bot.home.Stop())
	until(t, "no failure noted", func() bool {
		d, healthy = bot.doctor(t)
		return d.Matrix.SyncFailures > 0
	})
	if healthy || !d.says("ill", "does not answer") || !d.says("ok", "nothing waits") || !d.says("note", "failed since, the last one with: ") || !d.Matrix.Running || d.Matrix.Problem == "" {
		t.Errorf("of a homeserver that is gone: %+v", d)
	}

	_ = bot.cmd.Process.Signal(syscall.SIGTERM)
	<-bot.exited
	if d, _ = bot.doctor(t); d.Matrix.Running || !d.says("note", "the bot is not running; last sync ") {
		t.Errorf("of a bot that was stopped: %+v", d)
	}
}
