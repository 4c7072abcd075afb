package task

import "testing"

func TestEvidence(t *testing.T) {
	const content = "Water the plants in the kitchen"
	for _, reason := range []string{
		"", "done", "Done!!!!!!!!!!!!", "          done          ", "The task is completed.", "Task has been done successfully", "ok ok ok ok ok ok",
		"Water the plants in the kitchen", "plants in the kitchen is done", "Die Aufgabe ist erledigt.",
		"La tâche est terminée", "La tarea está completada", "Il compito è stato completato", "任务已经完成了，任务已完成", "タスクは完了しました",
	} {
		if Evidence(reason, content) == nil {
			t.Errorf("%q counts as evidence", reason)
		}
	}
	for _, reason := range []string{
		"Anna says they are watered", "I sent the mail to Ben at 9:00", "Anna hat gegossen", "用户说已经浇水了", "アンナが水をやったと言った", "Done: the test suite passes",
	} {
		if err := Evidence(reason, content); err != nil {
			t.Errorf("%q is refused: %v", reason, err)
		}
	}
}
