package task

import (
	"fmt"
	"slices"
	"strconv"

	"reverie/internal/i18n"
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
	if err := e.exec(`UPDATE goal_checkpoint SET status = ?, changed = ? WHERE goal = ? AND n = ?`, status, e.now.UnixMilli(), e.goal.ID, c.N); err != nil {
		return err
	}
	c.Status = status
	if status == Done && sameness(e.goal.Next) == sameness(c.Description) { // what was next is done
		if err := e.exec(`UPDATE goal SET next = '' WHERE id = ?`, e.goal.ID); err != nil {
			return err
		}
		e.goal.Next = ""
	}
	return e.changed("checkpoint", fmt.Sprintf("%d. %s: %s", c.N, c.Description, status))
}

func (e *edit) addCheckpoint(text string, status Step) error {
	n := len(e.goal.Checkpoints) + 1
	if n > maxCheckpoints {
		return breaks("a goal has at most %d checkpoints: mark those that are done, and make the rest a goal of its own", maxCheckpoints)
	}
	if err := e.exec(`INSERT INTO goal_checkpoint (goal, n, description, status, changed) VALUES (?, ?, ?, ?, ?)`,
		e.goal.ID, n, text, status, e.now.UnixMilli()); err != nil {
		return err
	}
	e.goal.Checkpoints = append(e.goal.Checkpoints, Checkpoint{N: n, Description: text, Status: status, Changed: e.now})
	return e.changed("checkpoint", fmt.Sprintf("%d. %s: %s", n, text, status))
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
			if d.Rationale == "" {
				d.Rationale = known.Rationale
			}
			return e.setDecision(known, Decision{N: known.N, Description: known.Description, Rationale: d.Rationale, Locked: d.Locked})
		case same && (unlock || d.Rationale != "" && d.Rationale != known.Rationale):
			return e.conflict(*known, d, unlock)
		case same:
			return nil
		case known.Locked && contradicts(d.Description, known.Description):
			return e.conflict(*known, d, false)
		}
	}
	if len(e.goal.Decisions) >= maxDecisions {
		return breaks("a goal has at most %d decisions: change one of them instead of adding another", maxDecisions)
	}
	if err := e.mayLock(d.Locked); err != nil {
		return err
	}
	d.N = len(e.goal.Decisions) + 1
	if err := e.exec(`INSERT INTO goal_decision (goal, n, description, rationale, locked) VALUES (?, ?, ?, ?, ?)`,
		e.goal.ID, d.N, d.Description, d.Rationale, d.Locked); err != nil {
		return err
	}
	e.goal.Decisions = append(e.goal.Decisions, d)
	return e.changed(decisionKind(d), fmt.Sprintf("%d. %s", d.N, d.Description))
}

func (e *edit) redecide(n int, d Decision) error {
	if n < 1 || n > len(e.goal.Decisions) {
		return breaks("there is no decision %d, there are %d: leave the number out to record a new one", n, len(e.goal.Decisions))
	}
	known := &e.goal.Decisions[n-1]
	if d.Description == "" {
		d.Description = known.Description
	}
	d, err := checkDecision(d)
	if err != nil {
		return err
	}
	if d.Rationale == "" {
		d.Rationale = known.Rationale
	}
	d.N = n
	if known.Locked {
		if d.Locked = true; d == *known {
			return nil
		}
		return e.conflict(*known, d, false)
	}
	return e.setDecision(known, d)
}

func checkDecision(d Decision) (Decision, error) {
	var err error
	if d.Description, err = goalText("decision", d.Description, maxDecision, "Use SQLite"); err != nil {
		return d, err
	}
	if d.Rationale, err = oneLine("rationale", d.Rationale, maxRationale); err != nil {
		return d, breaks("%v", err)
	}
	return d, nil
}

// mayLock refuses more locked decisions than every prompt has room for.
func (e *edit) mayLock(lock bool) error {
	locked := 0
	for _, d := range e.goal.Decisions {
		if d.Locked {
			locked++
		}
	}
	if lock && locked >= maxLocked {
		return breaks("a goal has at most %d locked decisions: record this one without locking it", maxLocked)
	}
	return nil
}

func (e *edit) setDecision(known *Decision, d Decision) error {
	if d == *known {
		return nil
	}
	if err := e.mayLock(d.Locked); err != nil {
		return err
	}
	if err := e.exec(`UPDATE goal_decision SET description = ?, rationale = ?, locked = ? WHERE goal = ? AND n = ?`,
		d.Description, d.Rationale, d.Locked, e.goal.ID, d.N); err != nil {
		return err
	}
	*known = d
	return e.changed(decisionKind(d), fmt.Sprintf("%d. %s", d.N, d.Description))
}

func decisionKind(d Decision) string {
	if d.Locked {
		return "locked"
	}
	return "decision"
}

// conflict keeps that somebody wanted what a locked decision forbids.
func (e *edit) conflict(known, wanted Decision, unlock bool) error {
	text := wanted.Description
	if unlock {
		text += " (not locked)"
	} else if wanted.Rationale != "" && sameness(wanted.Description) == sameness(known.Description) {
		text += " (" + wanted.Rationale + ")"
	}
	if err := e.event("conflict", fmt.Sprintf("%d. %s: %s", known.N, known.Description, text)); err != nil {
		return err
	}
	return &broken{i18n.Text(fmt.Sprintf("decision %d %q is locked and never changes: keep to it; if it no longer fits, tell the person, who can start a new goal", known.N, known.Description)), ErrLocked}
}

// artifact notes what became of a file: what was created and then modified was created.
func (e *edit) artifact(a Artifact) error {
	var err error
	if a.Path, err = goalText("path", a.Path, maxPath, "src/auth/login.ts"); err != nil {
		return err
	}
	if a.Action = norm(a.Action); !slices.Contains([]string{"created", "modified", "deleted"}, a.Action) {
		return breaks("artifact action %q is not known: use created, modified or deleted", a.Action)
	}
	if a.Type = norm(a.Type); a.Type == "" {
		a.Type = TypeOf(a.Path)
	}
	if !slices.Contains([]string{"file", "test", "documentation", "configuration"}, a.Type) {
		return breaks("artifact type %q is not known: use file, test, documentation or configuration", a.Type)
	}
	at := slices.IndexFunc(e.goal.Artifacts, func(b Artifact) bool { return b.Path == a.Path })
	if at >= 0 {
		known := &e.goal.Artifacts[at]
		if known.Action == "created" && a.Action == "modified" {
			a.Action = "created"
		}
		if *known == a {
			return nil
		}
		if err := e.exec(`UPDATE goal_artifact SET type = ?, action = ? WHERE goal = ? AND path = ?`, a.Type, a.Action, e.goal.ID, a.Path); err != nil {
			return err
		}
		*known = a
		return e.changed("artifact", a.Action+" "+a.Path)
	}
	if len(e.goal.Artifacts) >= maxArtifacts {
		return breaks("a goal has at most %d artifacts: name a folder instead of each file in it", maxArtifacts)
	}
	if err := e.exec(`INSERT INTO goal_artifact (goal, n, type, action, path) VALUES (?, ?, ?, ?, ?)`,
		e.goal.ID, len(e.goal.Artifacts)+1, a.Type, a.Action, a.Path); err != nil {
		return err
	}
	e.goal.Artifacts = append(e.goal.Artifacts, a)
	return e.changed("artifact", a.Action+" "+a.Path)
}

func (e *edit) changed(kind, detail string) error {
	if err := e.touch(); err != nil {
		return err
	}
	return e.event(kind, detail)
}
