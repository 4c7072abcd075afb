package rehearsal

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reverie/internal/lazyregexp"
)

// rule answers a turn, or returns false if it does not apply.
type rule func(turn) (reply, bool)

// rules are tried in order; the first that applies answers.
var rules = []rule{
	harvest, objective, whenMatches(hookRE, hook), summarise,
	whenMatches(sendRE, sendFile), whenMatches(modeRE, setMode), whenMatches(questionRE, askPerson),
	whenMatches(chosenRE, chosen), whenMatches(rememberRE, remember),
	whenMatches(listRE, listTasks), whenMatches(changeRE, changeTask), whenMatches(remindRE, addTask), whenMatches(workRE, workTask),
	whenMatches(writeRE, writeFile), whenMatches(editRE, editFile), whenMatches(readRE, readFile), whenMatches(skillRE, addSkill),
	describePictures, describeFiles, describeMissing, recall, fallback,
}

// whenMatches returns a rule that applies when a person's words match.
func whenMatches(words func() *regexp.Regexp, do func(t turn, m []string) (reply, bool)) rule {
	return func(t turn) (reply, bool) {
		if m := words().FindStringSubmatch(t.said); m != nil {
			return do(t, m)
		}
		return reply{}, false
	}
}

// turn is the newest message of a person and the tool results since.
type turn struct {
	req      request
	said     string    // the person's own words
	whole    string    // the complete message
	pictures []picture // that came with it
	results  []string  // of tools called for it, oldest first
	first    bool      // no answer in this conversation yet
}

// notice begins the first answer of every conversation.
const notice = "**No language model is connected yet.** I am the rehearsal model: a few fixed rules that stand in for one.\n" +
	"To connect one, start Ollama, llama.cpp or LM Studio on this machine, or set `REVERIE_LLM_URL`, `REVERIE_LLM_KEY` and `REVERIE_LLM_MODEL`; " +
	"for good, name it under `llm.models` in `config.yaml`.\n" +
	"Until then, try: *remember that …*, *what do you know about …?*, *remind me to … tomorrow at 9:00*."

// answer answers a request by the rules.
func answer(req request) reply {
	t := turnOf(req)
	for i, rule := range rules {
		a, ok := rule(t)
		if !ok {
			continue
		}
		if asked := i <= 3; t.first && !asked && // no test, and not the program itself
			len(a.calls) == 0 {
			a.text = notice + "\n\n" + a.text
		}
		return a
	}
	return reply{} // unreachable: fallback answers everything
}

func turnOf(req request) turn {
	t := turn{req: req, first: true}
	newest := -1
	for i, m := range req.Messages {
		if m.Role == "user" {
			newest = i
		}
	}
	for i, m := range req.Messages {
		switch {
		case i == newest:
			t.said, t.whole, t.pictures = ownWords(m.text), m.text, m.pictures
		case m.Role == "assistant" && i < newest:
			t.first = false
		case m.Role == "tool" && i > newest:
			t.results = append(t.results, strings.TrimSpace(beforeNote(m.text)))
		}
	}
	return t
}

// beforeNote strips the program's note from a tool's result.
func beforeNote(result string) string {
	before, _, _ := strings.Cut(result, "\n[note ")
	return before
}

// lead matches a polite introduction.
const lead = `(?:(?:hi|hello|hey|please|and|also|ok|okay|now|then|reverie|just|(?:can|could|would|will) you|i(?:'d like| want) you to)[\s,.!:]+)*`

// callTool calls a tool and, once its result is there, reports it: with done if the result contains
// proof, else as an error in the tool's words. proof may be "".
func (t turn) callTool(name string, args map[string]any, proof string, done func(result string) string) (reply, bool) {
	if n := len(t.results); n > 0 {
		result := t.results[n-1]
		if isError(name, result) || !strings.Contains(fold(result), fold(proof)) {
			return reply{text: fmt.Sprintf("That did not work. The tool `%s` says: %s", name, clip(result, 400))}, true
		}
		return reply{text: done(result)}, true
	}
	if !t.offers(name) {
		return reply{text: fmt.Sprintf("I cannot do that: the tool `%s` was not offered to me.", name)}, true
	}
	return reply{calls: []call{{Function: function{Name: name, Arguments: string(asJSON(args))}}}}, true
}

func (t turn) offers(name string) bool {
	return slices.ContainsFunc(t.req.Tools, func(o tool) bool { return o.name == name })
}

// isError recognizes a tool's error by its beginning: the protocol does not mark errors.
func isError(name, result string) bool {
	r := strings.TrimPrefix(strings.ToLower(strings.TrimLeft(result, `{" `)), name+" ")
	begins := []string{"error", "failed", "took longer", "was stopped", "there is no ", "nothing can be "}
	return slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(r, begin) })
}

var rememberRE = lazyregexp.New(`(?is)^(` + lead + `)(?:remember|don't forget)(?:\s+this)?(?:\s*:|\s+that\b)?\s+(.+)$`)

func remember(t turn, m []string) (reply, bool) {
	asks := strings.HasSuffix(t.said, "?")
	if asks && !strings.Contains(strings.ToLower(m[1]), "you") { // "remember my sister?"
		return reply{}, false
	}
	fact := fact(m[2])
	return t.callTool("append_memory", map[string]any{"entry": fact}, fact, func(string) string {
		return "I will remember: " + fact + "."
	})
}

// fact rephrases what a person wants remembered.
func fact(s string) string {
	s = strings.TrimRight(strings.Join(strings.Fields(s), " "), " .!?")
	return capitalize(strings.TrimRight(strings.TrimSuffix(s, " please"), " ,"))
}

var readRE = lazyregexp.New(`(?i)^` + lead + `(?:read|open|show(?: me)?)(?: the)?( file)?\s+[\x60"']?([^\s\x60"'?]+?)[\x60"']?[.?!]?$`)

func readFile(t turn, m []string) (reply, bool) {
	if m[1] == "" && !strings.ContainsAny(m[2], "./") { // "read Tolstoy"
		return reply{}, false
	}
	return t.callTool("read_file", map[string]any{"path": m[2]}, "", func(result string) string {
		return "`" + m[2] + "` begins:\n\n" + beginning(result)
	})
}

// beginning returns the first lines of a text as a code block.
func beginning(text string) string {
	var kept []string
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\n")
		if strings.HasPrefix(l, "<data") || strings.HasPrefix(l, "</data") {
			continue
		}
		if len(kept) == 12 {
			kept = append(kept, "…")
			break
		}
		if r := []rune(l); len(r) > 160 {
			l = string(r[:160]) + "…"
		}
		kept = append(kept, strings.ReplaceAll(l, "```", "'''"))
	}
	return "```\n" + strings.Join(kept, "\n") + "\n```"
}

var skillRE = lazyregexp.New(`(?is)^` + lead + `(?:add|save|create|make)(?: a| the)?(?: new)? skill\s+[\x60"']?([\w-]+)[\x60"']?\s*(?::|\s-)\s*(.+)$`)

func addSkill(t turn, m []string) (reply, bool) {
	summary, text, more := strings.Cut(strings.TrimSpace(m[2]), "\n")
	if text = strings.TrimSpace(text); !more || text == "" {
		text = summary
	}
	args := map[string]any{"skill_name": m[1], "summary": strings.TrimSpace(summary), "documentation": text}
	return t.callTool("add_skill", args, m[1], func(string) string {
		return fmt.Sprintf("The skill `%s` is kept: %s", m[1], clip(summary, 200))
	})
}

// fallback answers everything else.
func fallback(t turn) (reply, bool) {
	if n := len(t.results); n > 0 { // a rule called tools, and its message is gone
		return reply{text: "A tool said: " + clip(t.results[n-1], 400)}, true
	}
	if t.said == "" {
		return reply{text: "Hello! I only rehearse here. Say *remember that …* and I will show what I can do."}, true
	}
	greeting := ""
	if ok := greetRE().MatchString(t.said); ok {
		greeting = "Hello! "
	}
	return reply{text: fmt.Sprintf("%sI heard “%s”, but I only rehearse: without a language model I can say no more about it.", greeting, clip(t.said, 200))}, true
}

var greetRE = lazyregexp.New(`(?i)^(?:hi|hello|hey|good (?:morning|evening|afternoon|day))\b`)
