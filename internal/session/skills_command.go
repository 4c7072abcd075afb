package session

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

// skills is the command !skills: the skills that may be read here, a line each, or sharing one.
func (s *Session) skills(ctx context.Context, in Inbound, args string) (string, error) {
	if verb, name, _ := strings.Cut(args, " "); strings.EqualFold(verb, "share") {
		return s.shareSkill(ctx, in, strings.Trim(strings.TrimSpace(name), "`"))
	}
	all, err := s.cfg.Skills.List(s.place(in))
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return s.text(ctx, "skills.none"), nil
	}
	var b strings.Builder
	b.WriteString(s.text(ctx, "skills.head") + "\n\n")
	for _, k := range all[:min(len(all), mostListed)] {
		fmt.Fprintf(&b, "- `%s`: %s%s\n", k.Name, history.OneLine(k.Summary, 150), s.whoseSkill(ctx, k))
	}
	if more := len(all) - mostListed; more > 0 {
		b.WriteString("- " + s.text(ctx, "skills.more", "count", fmt.Sprint(more)) + "\n")
	}
	return strings.TrimSpace(b.String()), nil
}

// whoseSkill says who may read a skill that is not everybody's.
func (s *Session) whoseSkill(ctx context.Context, k skill.Skill) string {
	switch {
	case k.Label.Readers == trust.Everybody:
		return ""
	case k.Label.Readers.Room() == "":
		return " (" + s.text(ctx, "skills.yours") + ")"
	}
	return " (" + s.text(ctx, "skills.room") + ")"
}

// shareSkill makes a skill that may be read here everybody's. Only owners can: they vouch for it.
func (s *Session) shareSkill(ctx context.Context, in Inbound, name string) (string, error) {
	switch {
	case !tool.Allows(s.level(in), "!skills share"):
		return s.text(ctx, "skills.owners"), nil
	case name == "":
		return s.text(ctx, "skills.share"), nil
	}
	k, err := s.cfg.Skills.Share(s.place(in), name)
	for known, key := range map[error]string{skill.ErrUnknown: "skills.unknown", skill.ErrShared: "skills.already",
		skill.ErrTaken: "skills.taken", skill.ErrFront: "skills.front"} {
		if errors.Is(err, known) {
			return s.text(ctx, key, "name", asWord(name)), nil
		}
	}
	if err != nil {
		return "", err
	}
	s.log.Info("a skill is everybody's now", "skill", k.Name, "who", in.Sender)
	return s.text(ctx, "skills.shared", "name", asWord(k.Name), "path", asWord(k.Path)), nil
}
