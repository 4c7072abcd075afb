package section

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// gatherFile gathers one of the owner's files. A missing one is empty.
func gatherFile(name string) gather {
	return func(_ context.Context, q *Question) (*Content, error) {
		return q.textContent(name, q.markdown(name, q.optionalFile(name)))
	}
}

// switched are rules with switches, as JSON. What has no switch is on.
type switched struct {
	Sections []struct {
		Name    string
		Enabled *bool
		Items   []struct {
			Text    string
			Enabled *bool
		}
	}
}

// markdown returns the text of a file of the owner. Rules with switches become a heading and a list for
// each section; of these only what is on. JSON of another form is a problem, and stays as it is.
func (q *Question) markdown(name, said string) string {
	if !strings.HasPrefix(said, "{") {
		return said
	}
	var rules switched
	if err := json.Unmarshal([]byte(said), &rules); err != nil || rules.Sections == nil {
		q.Problem(name, 0, "is read as Markdown, switches included: "+cmp.Or(err, errors.New("no sections")).Error())
		return said
	}
	on := func(enabled *bool) bool { return enabled == nil || *enabled }
	var out []string
	for _, s := range rules.Sections {
		list := "## " + s.Name
		for _, item := range s.Items {
			if text := strings.TrimSpace(item.Text); on(s.Enabled) && on(item.Enabled) && text != "" {
				list += "\n- " + text
			}
		}
		if strings.Contains(list, "\n") {
			out = append(out, list)
		}
	}
	return strings.Join(out, "\n\n")
}

// optionalFile returns the text of an optional file.
func (q *Question) optionalFile(name string) string {
	t := q.sources.read(name)
	if t.problem != "" && t.problem != missing {
		q.Problem(name, 0, t.problem)
	}
	return q.fill(t.text)
}

// fill replaces the only placeholder that is allowed everywhere. Other braces are text.
func (q *Question) fill(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "{agent_name}", q.sources.Name)
}

// tierFile returns the path of the template for a mode and tier.
func tierFile(mode string, tier int) string {
	return "prompts/" + mode + "/tier" + strconv.Itoa(tier) + ".txt"
}

// gatherTemplate gathers the template of the turn's mode and tier. An empty one falls back to the
// tier below.
func gatherTemplate(_ context.Context, q *Question) (*Content, error) {
	if !isName(q.turn.Mode) {
		return nil, nil
	}
	for n := q.turn.tier(); n > 0; n-- {
		name := tierFile(q.turn.Mode, n)
		if said := q.optionalFile(name); said != "" {
			return q.textContent(name, said)
		}
	}
	return nil, nil
}

// gatherSeed gathers the program's note for the start of a conversation. It is English if the
// language has none.
func gatherSeed(_ context.Context, q *Question) (*Content, error) {
	if !q.turn.opensConversation() {
		return nil, nil
	}
	file := func(language string) string { return "prompts/SEED_" + language + ".txt" }
	name := file(q.sources.SeedLanguage)
	t := q.sources.read(name)
	if !t.exists && q.sources.SeedLanguage != "en" {
		t = q.sources.read(file("en"))
		t.problem = "is missing; SEED_en.txt is used"
	}
	if t.problem != "" {
		q.Problem(name, 0, t.problem)
	}
	return q.textContent("seed", q.fill(t.text))
}
