package answer

import (
	"errors"
	"testing"
)

// TestObjects: the last list counts; a truncated one is not empty.
// Holds L7.
func TestObjects(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   int
		err    error
	}{
		{`[{"a":1},{"a":2}]`, 2, nil}, {`Perhaps [{"a":1}]? No: [{"a":1},{"a":2,"b":[]},]`, 2, nil}, {`[{"a":1}] and [] [1] [see]`, 1, nil},
		{`[ ]`, 0, nil}, {`{"list": [{"a":1}, "b", 3]}`, 1, nil},
		{`[{"a":1,"b":[]},{"a":2,"b":[],"c`, 1, ErrPartial}, {`[{"a":1,"b":[],"c`, 0, ErrPartial}, {`[{"a":1}] then [{"a":2},{`, 1, ErrPartial},
		{`none [1]`, 0, ErrNoList}, {``, 0, ErrNoList},
	} {
		if got, err := LastObjects(c.answer); len(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", c.answer, got, err)
		}
	}
}
