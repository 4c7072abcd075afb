package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/history"
	"reverie/internal/skill"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// listSkills is the command !skills: it lists the skills visible here, or shares one.
func listSkills(ctx context.Context, call *Call, args string) (string, error) {
	if verb, name, _ := strings.Cut(args, " "); strings.EqualFold(verb, "share") {
		return shareSkill(ctx, call, strings.Trim(strings.TrimSpace(name), "`"))
	}
	all, err := call.Skills.List(call.Place)
	if err != nil || len(all) == 0 {
		return call.text(ctx, "skills.none"), err
	}
	var b strings.Builder
	b.WriteString(call.text(ctx, "skills.head") + "\n\n")
	for _, k := range all[:min(len(all), maxListed)] {
		summary := ": " + history.OneLine(k.Summary, 150)
		if k.Unreviewed { // foreign text, and clients would show its links
			summary = ""
		}
		fmt.Fprintf(&b, "- `%s`%s%s\n", k.Name, summary, skillReaders(ctx, call, k))
	}
	if more := len(all) - maxListed; more > 0 {
		b.WriteString("- " + call.text(ctx, "skills.more", "count", fmt.Sprint(more)) + "\n")
	}
	return strings.TrimSpace(b.String()), nil
}

// skillReaders says who may read a skill that is not shared with everybody, or that no owner has read it.
func skillReaders(ctx context.Context, call *Call, k skill.Skill) string {
	switch {
	case k.Unreviewed:
		return " (" + call.text(ctx, "skills.unreviewed") + ")"
	case k.Label.Readers == trust.Everybody:
		return ""
	case k.Label.Readers.Room() == "":
		return " (" + call.text(ctx, "skills.yours") + ")"
	}
	return " (" + call.text(ctx, "skills.room") + ")"
}

// shareSkill shares a skill visible here with everybody. Only owners may: they vouch for it.
func shareSkill(ctx context.Context, call *Call, name string) (string, error) {
	switch {
	case !tool.AllowsAct(call.Access.Integrity, "!skills share"):
		return call.text(ctx, "skills.owners"), nil
	case name == "":
		return call.text(ctx, "skills.share"), nil
	}
	k, err := call.Skills.Share(call.Place, name)
	for known, key := range map[error]string{skill.ErrUnknown: "skills.unknown", skill.ErrShared: "skills.already",
		skill.ErrTaken: "skills.taken", skill.ErrUnreviewed: "skills.review", skill.ErrFrontMatter: "skills.front"} {
		if errors.Is(err, known) {
			return call.text(ctx, key, "name", Word(name)), nil
		}
	}
	if err != nil {
		return "", err
	}
	call.Log.Info("skill shared with everybody", "skill", k.Name, "who", call.In.Sender)
	return call.text(ctx, "skills.shared", "name", Word(k.Name), "path", Word(k.Path)), nil
}
