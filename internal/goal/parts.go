package goal

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/store"
)

// checkpoint sets the state of the checkpoint that which names. implied says that
// no state was given: then one that is there stays as it is.
func (e *edit) checkpoint(which string, status Step, implied bool) error {
	which, err := goalText("checkpoint", which, maxCheckpoint, "Write the announcement")
	if err != nil {
		return err
	}
	if !slices.Contains([]Step{Pending, InProgress, Done}, status) {
		return breaks("checkpoint status %q is not known: use pending, in progress or done", status)
	}
	at := slices.IndexFunc(e.goal.Checkpoints, func(c Checkpoint) bool { return sameness(c.Description) == sameness(which) })
	if m := numberForm.FindStringSubmatch(which); at < 0 && m != nil {
		n, _ := strconv.Atoi(m[1]) // three digits
		at = slices.IndexFunc(e.goal.Checkpoints, func(c Checkpoint) bool { return c.N == n })
		if at < 0 {
			return breaks("there is no checkpoint %d, there are %d: name one of them, or describe a new one", n, len(e.goal.Checkpoints))
		}
	}
	if at < 0 {
		return e.addCheckpoint(which, status)
	}
	c := &e.goal.Checkpoints[at]
	if implied || c.Status == status {
		return nil
	}
	c.Status, c.Changed = status, e.now
	if status == Done && sameness(e.goal.Next) == sameness(c.Description) { // what was next is done
		e.goal.Next = ""
	}
	return e.changed(true)
}

func (e *edit) addCheckpoint(text string, status Step) error {
	n := len(e.goal.Checkpoints) + 1
	if n > maxCheckpoints {
		return breaks("a goal has at most %d checkpoints: mark those that are done, and make the rest a goal of its own", maxCheckpoints)
	}
	e.goal.Checkpoints = append(e.goal.Checkpoints, Checkpoint{N: n, Description: text, Status: status, Changed: e.now})
	return e.changed(true)
}

// decide records a decision, or locks one that is there. unlock asks for a lock to
// be taken away, which a locked decision refuses.
func (e *edit) decide(d Decision, unlock bool) error {
	var err error
	if d, err = checkDecision(d); err != nil {
		return err
	}
	for i := range e.goal.Decisions {
		known := &e.goal.Decisions[i]
		switch same := sameness(known.Description) == sameness(d.Description); {
		case same && !known.Locked:
			d.N, d.Description, d.Rationale = known.N, known.Description, cmp.Or(d.Rationale, known.Rationale)
			return e.setDecision(d)
		case same && (unlock || d.Rationale != "" && d.Rationale != known.Rationale):
			return e.conflict(*known)
		case same:
			return nil
		case known.Locked && contradicts(d.Description, known.Description):
			return e.conflict(*known)
		}
	}
	if len(e.goal.Decisions) >= maxDecisions {
		return breaks("a goal has at most %d decisions: change one of them instead of adding another", maxDecisions)
	}
	d.N = len(e.goal.Decisions) + 1
	return e.setDecision(d)
}

func (e *edit) redecide(n int, d Decision) error {
	if n < 1 || n > len(e.goal.Decisions) {
		return breaks("there is no decision %d, there are %d: leave the number out to record a new one", n, len(e.goal.Decisions))
	}
	known := &e.goal.Decisions[n-1]
	d.Description = cmp.Or(d.Description, known.Description)
	d, err := checkDecision(d)
	if err != nil {
		return err
	}
	d.N, d.Rationale = n, cmp.Or(d.Rationale, known.Rationale)
	if known.Locked {
		if d.Locked = true; d == *known {
			return nil
		}
		return e.conflict(*known)
	}
	return e.setDecision(d)
}

func checkDecision(d Decision) (Decision, error) {
	var err error
	if d.Description, err = goalText("decision", d.Description, maxDecision, "Use SQLite"); err != nil {
		return d, err
	}
	if d.Rationale, err = store.CheckLine("rationale", d.Rationale, maxRationale); err != nil {
		return d, breaks("%v", err)
	}
	return d, nil
}

// setDecision records d, or puts it in the place of the one with its number, which is not locked. It
// refuses more locked decisions than every prompt has room for.
func (e *edit) setDecision(d Decision) error {
	if d.N <= len(e.goal.Decisions) && d == e.goal.Decisions[d.N-1] {
		return nil
	}
	locked := 0
	for _, o := range e.goal.Decisions {
		if o.Locked {
			locked++
		}
	}
	if d.Locked && locked >= maxLocked {
		return breaks("a goal has at most %d locked decisions: record this one without locking it", maxLocked)
	}
	if d.N > len(e.goal.Decisions) {
		e.goal.Decisions = append(e.goal.Decisions, d)
	} else {
		e.goal.Decisions[d.N-1] = d
	}
	return e.changed(true)
}

// conflict is the error of what a locked decision forbids.
func (e *edit) conflict(known Decision) error {
	return &broken{i18n.Text(fmt.Sprintf("decision %d %q is locked and never changes: keep to it; "+
		"if it no longer fits, tell the person, who can start a new goal", known.N, known.Description)), errLocked}
}

// artifact notes what became of a file: what was created and then modified was created.
func (e *edit) artifact(a Artifact) error {
	var err error
	if a.Path, err = goalText("path", a.Path, maxPath, "src/auth/login.ts"); err != nil {
		return err
	}
	if a.Action = strings.ToLower(strings.TrimSpace(a.Action)); !slices.Contains([]string{"created", "modified", "deleted"}, a.Action) {
		return breaks("artifact action %q is not known: use created, modified or deleted", a.Action)
	}
	at := slices.IndexFunc(e.goal.Artifacts, func(b Artifact) bool { return b.Path == a.Path })
	switch {
	case at >= 0:
		known := &e.goal.Artifacts[at]
		if known.Action == "created" && a.Action == "modified" {
			a.Action = "created"
		}
		if *known == a {
			return nil
		}
		*known = a
	case len(e.goal.Artifacts) >= maxArtifacts:
		return breaks("a goal has at most %d artifacts: name a folder instead of each file in it", maxArtifacts)
	default:
		e.goal.Artifacts = append(e.goal.Artifacts, a)
	}
	return e.changed(true)
}
