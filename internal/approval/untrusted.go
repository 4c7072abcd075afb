package approval

import (
	"fmt"
	"slices"
	"strings"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/prompt/section"
	"reverie/internal/trust"
)

// ListUntrusted names the untrusted texts of a request for people: its messages, summary and sections.
// fingerprint changes when more of them arrive.
func ListUntrusted(say i18n.Say, past []history.Message, c history.Compaction, sections []prompt.SectionReport) (
	sources []string, fingerprint string,
) {
	add := func(key string, args ...string) {
		if text := say(key, args...); !slices.Contains(sources, text) {
			sources = append(sources, text)
		}
	}
	newest, prefix := int64(0), ""
	for i := range past {
		m := &past[i]
		outcome := strings.HasPrefix(m.EventID, OutcomePrefix) && m.Label.Integrity < trust.Guest
		if m.Role == llm.Assistant && !outcome || m.Label.Integrity >= trust.User { // the model's text derives from the others
			continue
		}
		newest = m.ID
		switch {
		case m.Role == llm.Tool, outcome:
			add("approve.seen.tool")
		case len(m.Files) > 0:
			for _, f := range m.Files {
				add("approve.seen.file", "name", history.OneLine(f.Name, 60))
			}
		case len(m.Quoted) > 0:
			add("approve.seen.quote")
		default:
			add("approve.seen.kept")
		}
	}
	for i := range past {
		if m := &past[i]; m.Tail != "" && m.TailIntegrity < trust.User {
			add("approve.seen.kept")
			if m.TailIntegrity < trust.Guest { // text stored by allowed acts is not from outside
				newest = max(newest, m.ID)
			}
		}
	}
	summary := int64(0)
	if c.Text() != "" && c.Integrity < trust.User {
		summary = c.ID
		add("approve.seen.kept")
	}
	for _, r := range sections {
		if r.Integrity < trust.User && r.Tokens > 0 && r.ID != "summary" {
			add("approve.seen.kept")
			if r.Zone == section.Prefix && r.Integrity < trust.Guest {
				prefix += " " + r.ID
			}
		}
	}
	return sources, fmt.Sprintf("%d %d%s", newest, summary, prefix)
}
