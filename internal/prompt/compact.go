package prompt

import (
	"slices"
	"strconv"
	"strings"

	"reverie/internal/llm"
)

// compactFile is the template of the request that asks for a summary. It is read anew
// each time, as all prompt files are.
const compactFile = "COMPACTION_PROMPT.txt"

// Compaction is what a request for a summary is made of.
type Compaction struct {
	Words        int      // the summary may have
	Tier         int      // of the model that writes it; 0 = not known
	Goal         []string // what holds in any case
	Previous     string   // summary; "" = none
	Conversation string   // the part to be summarised
}

// Parts of COMPACTION_PROMPT.txt that hold other people's words go into a message of their own.
var compactData = []string{"previous", "conversation"}

// compactPlaceholders are those of COMPACTION_PROMPT.txt.
var compactPlaceholders = []string{"{goal}", "{previous}", "{conversation}", "{words}", "{agent_name}"}

// CompactionRequest makes the request for a summary from COMPACTION_PROMPT.txt. A section whose
// placeholder has nothing to say is left out; words that have no placeholder are appended.
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
		text, ok := fillIn(strings.ReplaceAll(s.Text, "{history}", "{conversation}"), values, said) // two names of one thing
		switch {
		case !ok:
		case slices.Contains(compactData, s.Name):
			user = append(user, text)
		default:
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

// fillIn puts values in the place of their names, in one pass: a brace in a value is
// text, and so is one with no name. ok is false if a name that stands in text has no value.
func fillIn(text string, values map[string]string, said map[string]bool) (_ string, ok bool) {
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
