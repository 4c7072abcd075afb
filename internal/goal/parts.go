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

// setCheckpoint sets the state of the checkpoint named by description or number, or adds one. With
// status "" an existing checkpoint keeps its own.
func (e *edit) setCheckpoint(which string, status CheckpointStatus) error {
	which, err := checkText("checkpoint", which, maxCheckpoint, "Write the announcement")
	if err != nil {
		return err
	}
	if !slices.Contains([]CheckpointStatus{"", Pending, InProgress, Done}, status) {
		return modelRefusal("checkpoint status %q is not known: use pending, in progress or done", status)
	}
	at := slices.IndexFunc(e.goal.Checkpoints, func(c Checkpoint) bool { return foldText(c.Description) == foldText(which) })
	if m := numberPattern().FindStringSubmatch(which); at < 0 && m != nil {
		n, _ := strconv.Atoi(m[1]) // three digits
		at = slices.IndexFunc(e.goal.Checkpoints, func(c Checkpoint) bool { return c.N == n })
		if at < 0 {
			return modelRefusal("there is no checkpoint %d, there are %d: name one of them, or describe a new one",
				n, len(e.goal.Checkpoints))
		}
	}
	if at < 0 {
		return e.addCheckpoint(which, cmp.Or(status, Pending))
	}
	c := &e.goal.Checkpoints[at]
	if status == "" || c.Status == status {
		return nil
	}
	c.Status, c.Changed = status, e.now
	if status == Done && foldText(e.goal.Next) == foldText(c.Description) { // the next step is done
		e.goal.Next = ""
	}
	return e.saveChange(true)
}

func (e *edit) addCheckpoint(text string, status CheckpointStatus) error {
	n := len(e.goal.Checkpoints) + 1
	if n > maxCheckpoints {
		return modelRefusal("a goal has at most %d checkpoints: mark those that are done, and make the rest a goal of its own",
			maxCheckpoints)
	}
	e.goal.Checkpoints = append(e.goal.Checkpoints, Checkpoint{N: n, Description: text, Status: status, Changed: e.now})
	return e.saveChange(true)
}

// decide records a decision, or locks an existing one. With d.N it replaces that one.
func (e *edit) decide(d Decision) error {
	if d.N != 0 {
		return e.changeDecision(d.N, d)
	}
	d, err := checkDecision(d)
	if err != nil {
		return err
	}
	for i := range e.goal.Decisions {
		existing := &e.goal.Decisions[i]
		switch same := foldText(existing.Description) == foldText(d.Description); {
		case same && !existing.Locked:
			d.N, d.Description, d.Rationale = existing.N, existing.Description, cmp.Or(d.Rationale, existing.Rationale)
			return e.setDecision(d)
		case same && d.Rationale != "" && d.Rationale != existing.Rationale:
			return e.lockedError(*existing)
		case same:
			return nil
		case existing.Locked && contradicts(d.Description, existing.Description):
			return e.lockedError(*existing)
		}
	}
	if len(e.goal.Decisions) >= maxDecisions {
		return modelRefusal("a goal has at most %d decisions: change one of them instead of adding another", maxDecisions)
	}
	d.N = len(e.goal.Decisions) + 1
	return e.setDecision(d)
}

func (e *edit) changeDecision(n int, d Decision) error {
	if n < 1 || n > len(e.goal.Decisions) {
		return modelRefusal("there is no decision %d, there are %d: leave the number out to record a new one", n, len(e.goal.Decisions))
	}
	existing := &e.goal.Decisions[n-1]
	d.Description = cmp.Or(d.Description, existing.Description)
	d, err := checkDecision(d)
	if err != nil {
		return err
	}
	d.N, d.Rationale = n, cmp.Or(d.Rationale, existing.Rationale)
	if existing.Locked {
		if d.Locked = true; d == *existing {
			return nil
		}
		return e.lockedError(*existing)
	}
	return e.setDecision(d)
}

func checkDecision(d Decision) (Decision, error) {
	var err error
	if d.Description, err = checkText("decision", d.Description, maxDecision, "Use SQLite"); err != nil {
		return d, err
	}
	if d.Rationale, err = store.CheckLine("rationale", d.Rationale, maxRationale); err != nil {
		return d, modelRefusal("%v", err)
	}
	return d, nil
}

// setDecision stores d under its number. It refuses more than maxLocked locked decisions.
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
		return modelRefusal("a goal has at most %d locked decisions: record this one without locking it", maxLocked)
	}
	if d.N > len(e.goal.Decisions) {
		e.goal.Decisions = append(e.goal.Decisions, d)
	} else {
		e.goal.Decisions[d.N-1] = d
	}
	return e.saveChange(true)
}

func (e *edit) lockedError(known Decision) error {
	return &refusalError{i18n.Text(fmt.Sprintf("decision %d %q is locked and never changes: keep to it; "+
		"if it no longer fits, tell the person, who can start a new goal", known.N, known.Description)), errLocked}
}

// recordArtifact records an action on a file. A created file that is modified stays created.
func (e *edit) recordArtifact(a Artifact) error {
	var err error
	if a.Path, err = checkText("path", a.Path, maxPath, "src/auth/login.ts"); err != nil {
		return err
	}
	if a.Action = strings.ToLower(strings.TrimSpace(a.Action)); !slices.Contains([]string{"created", "modified", "deleted"}, a.Action) {
		return modelRefusal("artifact action %q is not known: use created, modified or deleted", a.Action)
	}
	at := slices.IndexFunc(e.goal.Artifacts, func(b Artifact) bool { return b.Path == a.Path })
	switch {
	case at >= 0:
		existing := &e.goal.Artifacts[at]
		if existing.Action == "created" && a.Action == "modified" {
			a.Action = "created"
		}
		if *existing == a {
			return nil
		}
		*existing = a
	case len(e.goal.Artifacts) >= maxArtifacts:
		return modelRefusal("a goal has at most %d artifacts: name a folder instead of each file in it", maxArtifacts)
	default:
		e.goal.Artifacts = append(e.goal.Artifacts, a)
	}
	return e.saveChange(true)
}
