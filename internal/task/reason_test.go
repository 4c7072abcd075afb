package task

import "testing"

func TestEvidence(t *testing.T) {
	const content = "Water the plants in the kitchen"
	for reason, shows := range map[string]bool{
		"": false, "done": false, "Done!!!!!!!!!!!!": false, "The task is completed.": false, "Task has been done successfully": false,
		"Water the plants in the kitchen": false, "plants in the kitchen is done": false,
		"Anna says they are watered": true, "Anna hat gegossen": true, "用户说已经浇水了": true, "Done: the test suite passes": true,
	} {
		if err := CheckReason(reason, content); (err == nil) != shows {
			t.Errorf("%q: %v", reason, err)
		}
	}
}
