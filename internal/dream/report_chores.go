package dream

import (
	"fmt"
	"strings"
)

// line says what was done to a task.
func (c TaskChange) line() string { return fmt.Sprintf("%s (#%s): %s", c.Text, c.ID, c.What) }

// line says what was done to a skill.
func (c SkillChange) line() string { return c.Name + ": " + c.What.String() }

// writeChores writes what was done to tasks and skills, and what is proposed, each on a line.
func (r Report) writeChores(b *strings.Builder) {
	if len(r.Tasks) > 0 {
		b.WriteString("\n### Tasks\n")
		for _, c := range r.Tasks {
			fmt.Fprintf(b, "- %s\n", c.line())
		}
	}
	if len(r.Skills) > 0 {
		b.WriteString("\n### Skills\n")
		for _, c := range r.Skills {
			fmt.Fprintf(b, "- %s\n", c.line())
		}
	}
	if len(r.Proposals) > 0 {
		b.WriteString("\n### Proposed; nothing was done about it\n")
		for _, p := range r.Proposals {
			fmt.Fprintf(b, "- %s\n", p.Text)
		}
	}
	if len(r.Chores) > 0 {
		b.WriteString("\n### Tasks and skills\n")
		for _, c := range r.Chores {
			fmt.Fprintf(b, "- %s\n", c)
		}
	}
}
