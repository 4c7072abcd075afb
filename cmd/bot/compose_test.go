package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// TestCompose: the services of docker-compose.yml have no more rights than they need, and
// the bot's password is in no environment.
func TestCompose(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Environment map[string]string `yaml:"environment"`
			ReadOnly    bool              `yaml:"read_only"`
			Drop        []string          `yaml:"cap_drop"`
			Security    []string          `yaml:"security_opt"`
			Memory      string            `yaml:"mem_limit"`
			Secrets     []string          `yaml:"secrets"`
			Ports       []string          `yaml:"ports"`
		} `yaml:"services"`
		Secrets map[string]struct {
			File string `yaml:"file"`
		} `yaml:"secrets"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for name, s := range file.Services {
		if !slices.Equal(s.Drop, []string{"ALL"}) || !slices.Equal(s.Security, []string{"no-new-privileges:true"}) {
			t.Errorf("%s has rights that it does not need: %v, %v", name, s.Drop, s.Security)
		}
		if name != "ollama" && (!s.ReadOnly || s.Memory == "" || s.Environment["GOMEMLIMIT"] == "") { // models need what they need
			t.Errorf("%s writes anywhere, or takes any memory", name)
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
	}
	if bot := file.Services["bot"]; !slices.Equal(bot.Secrets, []string{"matrix_password"}) || file.Secrets["matrix_password"].File == "" {
		t.Errorf("the bot gets its password from %v", bot.Secrets)
	}
}
