package session

import (
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/skill"
)

// outside is what tools brought into the conversation that is nobody's here, and what
// bystanders said. What
// memory was searched for is not: it was noted, or said, in this very scope.
func outside(past []history.Message) string {
	foreign := map[string]bool{} // by the id of the call
	var read []string
	for _, m := range past {
		for _, f := range m.Files {
			read = append(read, f.Text)
		}
		for _, c := range m.Calls {
			foreign[c.ID] = c.Name != "search_memory" && !slices.Contains(ownTools, c.Name)
		}
		if m.Role == llm.Tool && foreign[m.CallID] {
			read = append(read, m.Text)
		}
		if m.Bystanders {
			read = append(read, m.Quotes())
		}
	}
	return strings.Join(read, "\n")
}

// agreed is the assistant's last answer, as people read it, if user has agreed to it
// since or asked to keep something; "" = not.
func agreed(past []history.Message, user string) string {
	at := -1
	for i, m := range past {
		if m.Role == llm.Assistant && len(m.Calls) == 0 && strings.TrimSpace(m.Text) != "" {
			at = i
		}
	}
	if at < 0 || !slices.ContainsFunc(past[at:], func(m history.Message) bool { return m.Role == llm.User && m.Sender == user && says(m.Text) }) {
		return ""
	}
	return visible(past[at].Text)
}

// longestYes is how many characters somebody who says yes, and no more, may need.
const longestYes = 60

// says reports whether a message agrees, or asks to keep something.
func says(text string) bool {
	if prompt.AsksToKeep(text) {
		return skill.Said(text, keepsNot) == ""
	}
	return utf8.RuneCountInString(text) <= longestYes && skill.Said(text, agreements) != "" && skill.Said(text, refusals) == ""
}

// Words that agree and that refuse, in the languages of the seeds, matched whole.
var (
	agreements = []string{
		"yes", "yeah", "yep", "sure", "ok", "okay", "please do", "do it", "do that", "go ahead", "remember it", "note it", "note that", "save it", "keep it", "👍", "✅",
		"ja", "jo", "gern", "gerne", "klar", "bitte", "mach das", "mach es", "merk es dir", "merke es dir", "speichere es", "in ordnung", "einverstanden",
		"sí", "si", "claro", "vale", "de acuerdo", "hazlo", "por favor", "guárdalo", "apúntalo", "recuérdalo",
		"oui", "d'accord", "d’accord", "bien sûr", "vas-y", "fais-le", "faites-le", "note-le", "retiens-le", "volontiers",
		"sì", "certo", "va bene", "d'accordo", "d’accordo", "fallo", "salvalo", "ricordalo", "volentieri",
		"はい", "うん", "お願いします", "お願い", "いいよ", "いいです", "もちろん", "是", "是的", "好", "好的", "可以", "行", "没问题", "請", "请",
	}
	refusals = []string{
		"no", "nope", "not", "don't", "don’t", "do not", "never", "nein", "nicht", "lieber nicht", "nee", "kein", "non", "ne", "pas", "nunca", "jamais", "mai",
		"いいえ", "やめて", "しないで", "不", "不要", "不用", "别", "不是", "不行", "不可以",
	}
	keepsNot = []string{
		"not remember", "don't remember", "don’t remember", "never remember", "nicht merken", "merk dir nicht", "merk dir das nicht", "nicht notieren", "no recuerdes", "no apuntes",
		"ne retiens pas", "ne note pas", "non ricordare", "non segnarti", "覚えなくて", "不要记", "不要記", "别记",
	}
)
