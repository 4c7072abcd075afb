package llm

import (
	"strings"
	"testing"
)

func TestEstimateTokens(t *testing.T) {
	tests := []struct {
		in   string
		want int
	}{
		{"", 0},
		{"a", 1},
		{strings.Repeat("a", 100), 21},
		{strings.Repeat(" ", 100), 21},
		{strings.Repeat("A", 100), 35},
		{strings.Repeat("7", 100), 45},
		{strings.Repeat("{", 100), 55},
		{strings.Repeat("ж", 100), 30},
		{strings.Repeat("猫", 100), 75},
		{strings.Repeat("\xff", 100), 75},
	}
	for _, tt := range tests {
		if got := EstimateTokens(tt.in); got != tt.want {
			t.Errorf("%.10q…: %d, want %d", tt.in, got, tt.want)
		}
	}
	sum := 0
	if n := testing.AllocsPerRun(10, func() { sum += EstimateTokens("héllo wörld 猫") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
