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
			for size := 1; size <= len(tt.in); size++ {
				var f think
				for rest := tt.in; rest != ""; {
					n := min(size, len(rest))
					f.write(rest[:n])
					rest = rest[n:]
				}
				if text := f.finish(); text != tt.text {
					t.Fatalf("in pieces of %d: %q, want %q", size, text, tt.text)
				}
			}
		})
	}
}

// How the text is cut into pieces never changes the result, what was shown last
// is what remains once a piece is complete, and nothing is made up.
func FuzzThink(f *testing.F) {
	for _, s := range []string{"<think>a</think>b", "a</think>b", "`<think>`", "```\n<think>\n```", "<thi<think></thin</think>", "x <thinking> y"} {
		f.Add(s, uint8(3))
		f.Add(s, uint8(1))
	}
	f.Fuzz(func(t *testing.T, in string, size uint8) {
		var whole, cut think
		whole.write(in)
		text := whole.finish()
		step := int(size)%16 + 1
		for rest := in; rest != ""; {
			n := min(step, len(rest))
			cut.write(rest[:n])
			rest = rest[n:]
		}
		if text2 := cut.finish(); text != text2 {
			t.Fatalf("whole: %q, in pieces of %d: %q", text, step, text2)
		}
		if text != cut.visible() {
			t.Fatalf("visible at the end %q, finished %q", cut.visible(), text)
		}
		if len(text) > len(in) {
			t.Fatalf("%q became %q", in, text)
		}
		if !strings.Contains(strings.ToLower(in), "think") && text != strings.TrimSpace(in) {
			t.Fatalf("%q became %q without any tag", in, text)
		}
	})
}
