package llm

import (
	"strings"
	"testing"
)

func TestThink(t *testing.T) {
	tests := []struct{ name, in, text, thought string }{
		{"none", "plain <b>text</b> 1 < 2", "plain <b>text</b> 1 < 2", ""},
		{"a block", "<think>\nplan\n</think>\n\nHi", "Hi", "plan"},
		{"the other tag, other case", "<Thinking>plan</THINKING>Hi", "Hi", "plan"},
		{"two blocks", "<think>one</think>Hi <think>two</think>there", "Hi there", "one\n\ntwo"},
		{"only a closing tag", "plan\nmore\n</think>\nHi", "Hi", "plan\nmore"},
		{"a tag named in the thinking", "<think>a <think> tag and </think> too</think>Hi", "Hi", "a <think> tag and\n\ntoo"},
		{"never closed at the beginning", "<think>plan without end", "", "plan without end"},
		{"never closed in a line", "The <think> tag opens", "The <think> tag opens", ""},
		{"in code", "Write `<think>` and `</think>`", "Write `<think>` and `</think>`", ""},
		{"in a fence", "So:\n```\n<think>x</think>\n```\nis it", "So:\n```\n<think>x</think>\n```\nis it", ""},
		{"half a tag at the end", "1 <thi", "1 <thi", ""},
		{"empty block", "<think>\n\n</think>\n\nHi", "Hi", ""},
		{"unbalanced fence in the thinking", "<think>```\nx</think>Hi", "Hi", "```\nx"},
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
				text, thought := f.finish()
				if text != tt.text || thought != tt.thought {
					t.Fatalf("in pieces of %d: text %q, want %q; thinking %q, want %q", size, text, tt.text, thought, tt.thought)
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
		text, thought := whole.finish()
		step := int(size)%16 + 1
		for rest := in; rest != ""; {
			n := min(step, len(rest))
			cut.write(rest[:n])
			rest = rest[n:]
		}
		text2, thought2 := cut.finish()
		if text != text2 || thought != thought2 {
			t.Fatalf("whole: %q / %q\nin pieces of %d: %q / %q", text, thought, step, text2, thought2)
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
