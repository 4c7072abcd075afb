package skill

import (
	"slices"
	"testing"
)

func triggered(name string, priority int, triggers ...string) Skill {
	return newSkill(name, name+".md", head{priority: priority, turns: 4, triggers: triggers})
}

func TestMatch(t *testing.T) {
	tests := []struct {
		trigger, text string
		want          bool
	}{
		{"deploy", "Please DEPLOY it.", true},
		{"Deploy", "deploy", true},
		{"deploy", "redeploy", false},
		{"deploy", "deployment", false},
		{"deploy", "pre-deploy_step", true},
		{"docker compose", "use docker\n  compose now", true},
		{"a", "aa a", true},
		{"a a", "xa a a", true},
		{"straße", "die STRAßE", true},
		{"größe", "GRÖSSE", true},
		{"café", "cafés", false},
		{"σίσυφος", "Ο ΣΊΣΥΦΟΣ", true},
		{"привет", "приветствие", false},
		{"kelvin", "\u212aelvin", true},
		{"部署", "请帮我部署应用", true},
		{"배포", "배포를 해줘", true},
		{"docker", "用docker部署", true},
		{"docker", "用dockerfile部署", false},
		{"สวัสดี", "ครับสวัสดีครับ", true},
		{"c++", "c++17 and C++", true},
		{".go", "main.go", true},
		{"🚀", "go🚀go", true},
		{"deploy", "", false},
	}
	for _, tt := range tests {
		if got := len(Match([]Skill{triggered("a", 5, "not this one", tt.trigger)}, tt.text, 3)) == 1; got != tt.want {
			t.Errorf("%q in %q: %v", tt.trigger, tt.text, got)
		}
	}
}

func TestMatchRanks(t *testing.T) {
	skills := []Skill{triggered("d", 5, "x"), triggered("a", 9, "x", "y"), triggered("c", 1, "z"), triggered("b", 5, "y"), triggered("e", 1), triggered("f", 1, "y")}
	names := func(most int) (names string) {
		for _, s := range Match(skills, "x and y", most) {
			names += s.Name
		}
		return names
	}
	for most, want := range map[int]string{0: "", 1: "f", 3: "fbd", 4: "fbda", 99: "fbda"} {
		if got := names(most); got != want {
			t.Errorf("%d: %q, want %q", most, got, want)
		}
	}
	slices.Reverse(skills)
	if got := names(99); got != "fbda" {
		t.Errorf("the order of the skills shows: %q", got)
	}
}

// Said names the first of the phrases, by the rules of triggers.
func TestSaid(t *testing.T) {
	phrases := []string{"make a plan", "let's plan", "计划"}
	for text, want := range map[string]string{
		"Let's  PLAN it": "let's plan", "let's plan, make a plan": "make a plan", "outlet's plan": "", "let's plans": "", "我的计划书": "计划", "": "",
	} {
		if got := Said(text, phrases); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if Said("anything", nil) != "" {
		t.Error("no phrases, and one was said")
	}
}
