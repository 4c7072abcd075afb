package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"reverie/internal/llm"
	"reverie/internal/task"
)

// TestFloodOfTasks: a model that adds task after task to be worked on is refused from the
// bound on, and told what to tell the person.
func TestFloodOfTasks(t *testing.T) {
	w := newWorkshop(t)
	refused := 0
	for i := range 1000 {
		b := result(json.Marshal(map[string]any{"action": "add", "content": fmt.Sprintf("task %d", i), "schedule_type": "interval", "interval_seconds": 60, "ai_prompt": "think hard"}))(t)
		if r := w.Set.Run(t.Context(), direct(), llm.ToolCall{ID: "1", Name: "task", Arguments: string(b)}); r.Failed {
			if refused++; !strings.Contains(r.Content, "tell the person") {
				t.Fatal(r.Content)
			}
		}
	}
	if refused != 1000-task.DefaultPerRoom {
		t.Errorf("%d of 1000 tasks were refused", refused)
	}
}
