package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"reverie/cmd/bot/config"
	"reverie/internal/history"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
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

// TestDoctorTriesTheFolder: a data folder that cannot be created is an error.
func TestDoctorTriesTheFolder(t *testing.T) {
	if code, report := doctorSays(t, "/proc/ro/data", ""); code != exitFailed || !strings.Contains(report, "/proc/ro") {
		t.Errorf("exit code %d:\n%s", code, report)
	}
}

// TestDoctorExaminesConversations: what is wrong in one conversation is reported with its room or thread, what is
// wrong in all of them once, and the newest 50 are looked at.
func TestDoctorExaminesConversations(t *testing.T) {
	data := t.TempDir()
	text := "data: " + data + "\n" + strings.TrimPrefix(rehearsing, "data: ./data\n")
	code, _ := runBot(t, "hello\nhow are you\n", "chat", "--config", configFile(t, text))
	expect.Equal(t, code, 0)
	db := expect.Must(storetest.Open(t, filepath.Join(data, "bot.db")))(t)
	sql := func(query string, args ...any) {
		t.Helper()
		expect.Must(db.Exec(query, args...))(t)
	}
	for i := range 60 {
		room := fmt.Sprintf("!%d", i)
		talk := history.NewTimeline(room, map[bool]string{true: "$root"}[i == 40])
		sql(`INSERT INTO session (room, person, private, last_message_at) VALUES (?, '@ada', 0, 1)`, room)
		sql(`INSERT INTO room (id, thread_of) VALUES (?, ?)`, talk, map[bool]string{true: room}[i == 40])
		sql(`INSERT INTO message (id, room, conversation, role, event_id, sender, text, at) VALUES (?, ?, 1, 'user', ?, '@ada', 'hi', 1)`, i-100, talk, room)
		if i == 3 || i == 40 || i == 50 {
			sql(`INSERT INTO room_setting (room, name, value, person, at) VALUES (?, 'persona', ?, '@ada', 1)`, room, fmt.Sprint("p", i))
		}
	}
	sql(`INSERT INTO room (id) VALUES ('sub:1')`)
	sql(`UPDATE prompt_epoch SET first_message = 0, since_message = 0`)
	sql(`UPDATE message SET tail = replace(tail, '[/note', '[/noted') WHERE room = 'terminal'`)
	expect.OK(t, store.WriteFile(filepath.Join(data, "SOUL.md"), []byte("---\nmood: low\n---\n")))
	expect.OK(t, db.Close())
	failed, report := doctorSays(t, data, "")
	expect.Equal(t, failed, exitFailed)
	for _, want := range []string{"✗ prompt   in terminal: prompt: fences of message ", "!new there", "those of 50 conversations were examined",
		"· prompt   in thread:$root !40: personas/p40.md: is missing", "· prompt   in !50: personas/p50.md: is missing", "· prompt   SOUL.md:2: mood: unknown"} {
		expect.Equal(t, strings.Count(report, want), 1, "%q in\n%s", want, report)
	}
	for _, other := range []string{"p3.md", "sub:1", ": SOUL.md:2"} {
		expect.False(t, strings.Contains(report, other), "%q in\n%s", other, report)
	}
}

// TestDoctorNamesTemplates: an unusable template is reported with a remedy.
func TestDoctorNamesTemplates(t *testing.T) {
	data := t.TempDir()
	expect.OK(t, store.WriteFile(filepath.Join(data, "DREAM_TASK_PROMPT.txt"), []byte("What is done?\n{tasks}\n")))
	_, report := doctorSays(t, data, "")
	for _, want := range []string{
		"the built-in text is used instead of DREAM_TASK_PROMPT.txt", "DREAM_TASK_PROMPT.txt, line 2: {tasks} is no placeholder there; write {content}",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("doctor does not say %q:\n%s", want, report)
		}
	}
}

// TestDoctorNamesAdvisors: a file of an advisor that cannot be used is named with its remedy.
func TestDoctorNamesAdvisors(t *testing.T) {
	data := t.TempDir()
	for name, text := range map[string]string{"sceptic": "You doubt.", "planner": "---\nenabeld: false\n---\nYou plan."} {
		dir := filepath.Join(data, "advisors", name)
		expect.OK(t, os.MkdirAll(dir, 0o700))
		expect.OK(t, os.WriteFile(filepath.Join(dir, "ADVISOR.md"), []byte(text), 0o600))
	}
	_, report := doctorSays(t, data, "")
	expect.Has(t, report, "· advisors advisors/planner/ADVISOR.md:2: there is no such field: the fields are name, description, enabled")
	expect.Lacks(t, report, "sceptic")
}

func TestAsk(t *testing.T) {
	asked := func(lines ...string) (config.Answers, string, error) {
		var screen bytes.Buffer
		a := config.DefaultAnswers()
		err := askAnswers(t.Context(), strings.NewReader(strings.Join(lines, "\n")+"\n"), &screen, &a)
		return a, screen.String(), err
	}
	a, screen, err := asked("nonsense", "https://matrix.example.org", "reverie", "@reverie:example.org", "@reverie:example.org", "@me:example.org",
		"http://127.0.0.1:1/v1", "sk-my-key-itself", "LLM_KEY", "", "Europe/Berlln", "../etc/passwd", "Europe/Berlin")
	want := config.DefaultAnswers()
	want.Timezone, want.Homeserver, want.User, want.Owner = "Europe/Berlin", "https://matrix.example.org", "@reverie:example.org", "@me:example.org"
	want.ModelURL, want.KeyVariable = "http://127.0.0.1:1/v1", "LLM_KEY"
	if err != nil || a != want {
		t.Errorf("got  %+v, %v\nwant %+v\n%s", a, err, want, screen)
	}
	if n := strings.Count(screen, "is not valid."); n != 6 || !strings.Contains(screen, "[http://127.0.0.1:11434/v1]") {
		t.Errorf("%d refusals:\n%s", n, screen)
	}
	t.Setenv("LLM_KEY", "sk-hunter3")
	t.Setenv("MATRIX_PASSWORD", "hunter2")
	if c, err := parse(t, string(config.Render(a))); err != nil || c.LLM.Models[0].APIKey != "sk-hunter3" || c.Matrix.Password != "hunter2" {
		t.Errorf("%v", err)
	}
	a, screen, err = asked("", "", "", "", "")
	if err != nil || a != config.DefaultAnswers() || strings.Contains(screen, "bot's own account") {
		t.Errorf("%+v, %v\n%s", a, err, screen)
	}
	for _, lines := range [][]string{nil, {"https://matrix.example.org"}} {
		if _, _, err := asked(lines...); err == nil || !strings.Contains(err.Error(), "nothing was written") {
			t.Errorf("%q: %v", lines, err)
		}
	}
}

// TestDoctorKnowsMatrix: a web server that answers JSON is no homeserver.
func TestDoctorKnowsMatrix(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"versions": ["1.0"]}`)) }))
	defer web.Close()
	if code, report := doctorSays(t, "./data", web.URL); code != exitFailed || !strings.Contains(report, "✗ matrix   "+web.URL+" answers, but not as a Matrix homeserver") {
		t.Errorf("exit code %d:\n%s", code, report)
	}
}

// composeService holds the checked keys of a service in docker-compose.yml.
type composeService struct {
	User        string            `yaml:"user"`
	Image       string            `yaml:"image"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	ReadOnly    bool              `yaml:"read_only"`
	Drop        []string          `yaml:"cap_drop"`
	Security    []string          `yaml:"security_opt"`
	Memory      string            `yaml:"mem_limit"`
	Ports       []string          `yaml:"ports"`
	Volumes     []string          `yaml:"volumes"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
}

func composeServices(t *testing.T) map[string]composeService {
	t.Helper()
	var file struct {
		Services map[string]composeService `yaml:"services"`
	}
	expect.OK(t, yaml.Unmarshal([]byte(repoFile(t, "docker-compose.yml")), &file))
	return file.Services
}

func repoFile(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, filepath.Join("..", "..", name))
}

// TestCompose: the services have minimal rights, and write to folders that exist in the checkout
// but not in git or images.
func TestCompose(t *testing.T) {
	services := composeServices(t)
	expect.Equal(t, len(services), 5, "services")
	for name, s := range services {
		if !slices.Equal(s.Drop, []string{"ALL"}) || !slices.Equal(s.Security, []string{"no-new-privileges:true"}) || !s.ReadOnly {
			t.Errorf("%s has rights that it does not need: %v, %v, read_only %v", name, s.Drop, s.Security, s.ReadOnly)
		}
		if s.User != "${UID:-1000}:${GID:-1000}" || s.Image == "" || strings.HasSuffix(s.Image, ":latest") {
			t.Errorf("%s runs as %s, from the image %q", name, s.User, s.Image)
		}
		// Models need what they need, and their programs are not ours.
		if s.Memory == "" && name != "ollama" || s.Environment["GOMEMLIMIT"] == "" && !strings.HasPrefix(s.Image, "ollama/") {
			t.Errorf("%s takes any memory", name)
		}
		for key := range s.Environment {
			if strings.Contains(key, "PASSWORD") {
				t.Errorf("%s has %s in its environment", name, key)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s listens on %s", name, p)
			}
		}
		for _, v := range s.Volumes {
			folder, _, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(folder, "./docker/") || repoFile(t, filepath.Join(folder, ".gitignore")) != "*\n!.gitignore\n" {
				t.Errorf("%s writes to %s", name, folder)
			}
			if folder == "./docker/homeserver" && name != "homeserver" && !strings.Contains(v, ":ro") {
				t.Errorf("%s may write to the homeserver's files", name)
			}
		}
	}
	expect.Equal(t, services["bot"].DependsOn["setup"].Condition, "service_completed_successfully", "the bot waits for setup to end")
	expect.Equal(t, services["setup"].DependsOn["homeserver"].Condition, "service_healthy", "setup waits for the homeserver")
	if !slices.Contains(strings.Fields(repoFile(t, ".dockerignore")), "docker") {
		t.Error("docker/ goes into an image")
	}
}

// TestComposeSetup: the command of the service setup is one that the program understands.
func TestComposeSetup(t *testing.T) {
	args := slices.Clone(composeServices(t)["setup"].Command)
	for i, a := range args {
		args[i] = regexp.MustCompile(`\$\{\w+:-(.*?)\}`).ReplaceAllString(a, "$1")
	}
	t.Setenv("REVERIE_CONFIG", configFile(t, ""))
	if code, text := runBot(t, "", args...); code != 0 || !strings.Contains(text, "nothing to set up") {
		t.Errorf("%v: exit %d\n%s", args, code, text)
	}
}

// TestDockerfile: the files that the Dockerfile copies exist, and its homeserver has every value of
// dendrite.yaml.
func TestDockerfile(t *testing.T) {
	text := repoFile(t, "Dockerfile")
	copied := regexp.MustCompile(`(?m)^COPY (?:--chown\S+ |--chmod\S+ )*([^-<\n].*) \S+$`).FindAllStringSubmatch(text, -1)
	if len(copied) < 4 {
		t.Errorf("only %d lines COPY are read", len(copied))
	}
	for _, line := range copied {
		for source := range strings.FieldsSeq(line[1]) {
			if _, err := os.Stat(filepath.Join("..", "..", source)); err != nil {
				t.Errorf("%s: %v", line[0], err)
			}
		}
	}
	for _, value := range regexp.MustCompile(`@[A-Z_]+@`).FindAllString(repoFile(t, "internal/matrix/homeserver/dendrite.yaml"), -1) {
		if !strings.Contains(text, "s/"+value+"/") {
			t.Errorf("the homeserver's start script does not set %s", value)
		}
	}
}
