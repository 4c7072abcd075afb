package dream

import (
	"context"
	"fmt"
	"strings"

	"reverie/internal/dream/report"
	"reverie/internal/i18n"
	"reverie/internal/memory"
)

const (
	comparedBody = 4000
	alikeSkills  = .6 // share of common stems from which two skills are proposed
)

// skills proposes similar skills of the same readers. It changes no file.
func (r *run) skills(ctx context.Context) (proposals []report.Proposal, err error) {
	lib := r.d.cfg.Skills
	if lib == nil {
		return nil, nil
	}
	all, err := lib.All()
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	numbers := newNamer()
	said := make([]signature, len(all))
	for i, b := range all {
		body, err := lib.Body(b.ID())
		if err != nil {
			continue
		}
		body = strings.ToValidUTF8(body[:min(len(body), comparedBody)], "")
		said[i] = numbers.signatureOf(memory.Entry{Text: b.Summary + "\n" + body})
		for j, a := range all[:i] {
			if a.Label.Readers != b.Label.Readers || jaccard(said[i].stems, said[j].stems) < alikeSkills {
				continue
			}
			text := i18n.New("why.skills_alike", "first", a.Path, "second", b.Path)
			proposals = append(proposals, report.Proposal{Scope: a.Label.Readers, Text: text,
				Item: "skills/" + a.ID(), Other: "skills/" + b.ID()})
		}
	}
	return proposals, ctx.Err()
}
