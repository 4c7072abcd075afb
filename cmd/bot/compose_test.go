package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// composeService is what is checked of a service in docker-compose.yml.
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
	must(t, yaml.Unmarshal([]byte(repoFile(t, "docker-compose.yml")), &file))
	return file.Services
}

func repoFile(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, filepath.Join("..", "..", name))
}

// TestCompose: the services of docker-compose.yml have no more rights than they need, and write
// to folders that the checkout has and git and images leave out.
func TestCompose(t *testing.T) {
	services := composeServices(t)
	if len(services) != 5 {
		t.Errorf("%d services", len(services))
	}
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
	if c := services["bot"].DependsOn["setup"].Condition; c != "service_completed_successfully" {
		t.Errorf("the bot waits for setup: %q", c)
	}
	if c := services["setup"].DependsOn["homeserver"].Condition; c != "service_healthy" {
		t.Errorf("setup waits for the homeserver: %q", c)
	}
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

// TestDockerfile: what the Dockerfile copies is there, and its homeserver has every value of dendrite.yaml.
func TestDockerfile(t *testing.T) {
	text := repoFile(t, "Dockerfile")
	copied := regexp.MustCompile(`(?m)^COPY (?:--chown\S+ |--chmod\S+ )*([^-<\n].*) \S+$`).FindAllStringSubmatch(text, -1)
	if len(copied) < 4 {
		t.Errorf("only %d lines COPY are read", len(copied))
	}
	for _, line := range copied {
		for _, source := range strings.Fields(line[1]) {
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
