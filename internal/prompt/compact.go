package prompt

import (
	"strconv"
	"strings"

	"reverie/internal/llm"
)

// compactFile is the template of the request for a summary. Like all prompt files it is read for
// each request.
const compactFile = "COMPACTION_PROMPT.txt"

// Compaction is the content of a request for a summary.
type Compaction struct {
	Words        int      // the summary's limit
	Tier         int      // of the model that writes it; 0 = unknown
	Goal         []string // facts that must be kept
	Previous     string   // previous summary; "" = none
	Conversation string   // the part to be summarised
}

// compactPlaceholders are the placeholders of COMPACTION_PROMPT.txt.
var compactPlaceholders = []string{"{goal}", "{previous}", "{conversation}", "{words}", "{agent_name}"}

// CompactionRequest makes the request for a summary from COMPACTION_PROMPT.txt. It drops sections
// whose placeholder is empty, and appends values without a placeholder.
func (a *Assembler) CompactionRequest(c Compaction) []llm.Message {
	sections, problems := a.cfg.Read(compactFile, c.Tier)
	if len(problems) > 0 {
		a.logProblems(problems)
	}
	nonce := a.nonce()
	data := func(source, text string) string {
		if text = strings.TrimSpace(text); text == "" {
			return ""
		}
		return fenced(text, source, nonce)
	}
	values := map[string]string{
		"{goal}": data("goal", strings.Join(c.Goal, "\n")), "{previous}": data("summary", c.Previous),
		"{conversation}": data("conversation", c.Conversation), "{words}": strconv.Itoa(c.Words), "{agent_name}": a.cfg.Name,
	}
	said := map[string]bool{}
	var system, user []string
	for _, s := range sections {
		text, ok := fillPlaceholders(strings.ReplaceAll(s.Text, "{history}", "{conversation}"), values, said) // {history} is an alias
		if ok && (s.Name == "previous" || s.Name == "conversation") {                                         // words of people go apart
			user = append(user, text)
		} else if ok {
			system = append(system, text)
		}
	}
	for _, name := range []string{"{goal}", "{previous}", "{conversation}"} {
		if !said[name] && values[name] != "" {
			user = append(user, values[name])
		}
	}
	return []llm.Message{
		{Role: llm.System, Content: strings.Join(system, "\n\n")},
		{Role: llm.User, Content: strings.Join(user, "\n\n")},
	}
}

// fillPlaceholders replaces placeholders by their values in one pass; braces in values are text, and so are
// unknown names. ok is false if a placeholder in text has no value.
func fillPlaceholders(text string, values map[string]string, said map[string]bool) (_ string, ok bool) {
	var pairs []string
	for _, name := range compactPlaceholders {
		if !strings.Contains(text, name) {
			continue
		}
		if values[name] == "" {
			return "", false
		}
		said[name] = true
		pairs = append(pairs, name, values[name])
	}
	return strings.NewReplacer(pairs...).Replace(text), true
}
