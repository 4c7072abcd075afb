package llm

import (
	"strings"
	"testing"
)

func TestThink(t *testing.T) {
	tests := []struct{ name, in, text string }{
		{"none", "plain <b>text</b> 1 < 2", "plain <b>text</b> 1 < 2"},
		{"a block", "<think>\nplan\n</think>\n\nHi", "Hi"},
		{"the other tag, other case", "<Thinking>plan</THINKING>Hi", "Hi"},
		{"two blocks", "<think>one</think>Hi <think>two</think>there", "Hi there"},
		{"only a closing tag", "plan\nmore\n</think>\nHi", "Hi"},
		{"a tag named in the thinking", "<think>a <think> tag and </think> too</think>Hi", "Hi"},
		{"never closed at the beginning", "<think>plan without end", ""},
		{"never closed in a line", "The <think> tag opens", "The <think> tag opens"},
		{"in code", "Write `<think>` and `</think>`", "Write `<think>` and `</think>`"},
		{"in a fence", "So:\n```\n<think>x</think>\n```\nis it", "So:\n```\n<think>x</think>\n```\nis it"},
		{"half a tag at the end", "1 <thi", "1 <thi"},
		{"empty block", "<think>\n\n</think>\n\nHi", "Hi"},
		{"unbalanced fence in the thinking", "<think>```\nx</think>Hi", "Hi"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if text, _ := answerIn(tt.in, true); text != tt.text {
				t.Errorf("%q, want %q", text, tt.text)
			}
		})
	}
}

// What is shown while a text grows has no half tags, and the whole of it is its answer. Nothing is made up.
func FuzzThink(f *testing.F) {
	for _, s := range []string{"<think>a</think>b", "a</think>b", "`<think>`", "```\n<think>\n```", "<thi<think></thin</think>", "x <thinking> y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		text, found := answerIn(in, true)
		shown, _ := answerIn(in, false)
		if !strings.HasPrefix(text, shown) {
			t.Fatalf("%q was shown of %q", shown, text)
		}
		if tag := "</think>"; strings.HasPrefix(in, tag) && !found.lone {
			t.Fatalf("%q has a closing tag alone", in)
		}
		if len(text) > len(in) {
			t.Fatalf("%q became %q", in, text)
		}
		if !strings.Contains(strings.ToLower(in), "think") && text != strings.TrimSpace(in) {
			t.Fatalf("%q became %q without any tag", in, text)
		}
	})
}
