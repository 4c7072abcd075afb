//go:build amd64 || arm64

package script

import (
	"strings"
	"testing"
	"time"

	"reverie/internal/sandbox"
)

func TestScripts(t *testing.T) {
	if err := sandbox.Supported(); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ code, want string }{
		{"6 * 7", "42\n"},
		{"console.log('a', {b: 1}, [1, null]); let x = {c: 2}; x", "a {\"b\":1} [1,null]\n{\"c\":2}\n"},
		{"let x;", ""},
		{"2n ** 64n", "18446744073709551616\n"},
		{"(async () => 5)()", "5\n"},
		{"new Date(Date.UTC(2026, 1, 1)).getHours()", "9\n"},
		{"let a = 1;\nfoo(", "SyntaxError: code.js: Line 2:5 Unexpected end of input (and 1 more errors)\n"},
		{"let a = 1;\nnull.x", "TypeError: Cannot read property 'x' of undefined at code.js:2:6\n"},
		{"console.log(1); throw new Error('no')", "1\nError: no at code.js:1:23\n"},
		{"function f() { f() }; f()", "RangeError: functions call each other too deeply at f (code.js:1:17)\n"},
		{"require('fs')", "ReferenceError: require is not defined at code.js:1:8\n"},
		{"while (true) {}", "it took longer than 1s at code.js:1:1\n"},
		{"typeof process + typeof fetch + typeof Deno + typeof setTimeout", "undefinedundefinedundefinedundefined\n"},
	} {
		r, err := Run(t.Context(), c.code, time.Second, "Asia/Tokyo")
		if err != nil || r.Output != c.want {
			t.Errorf("%s: %q, error %v; want %q", c.code, r.Output, err, c.want)
		}
	}
	for _, code := range []string{"let s = 'xxxxxxxx'; while (true) s += s", "let a = []; while (true) a.push(new Uint8Array(9e6).fill(1))",
		strings.Repeat("(", 2e6), "JSON.stringify(JSON.parse('['.repeat(1e6)))"} {
		r, err := Run(t.Context(), code, time.Second, "UTC")
		if err != nil || r.Code == 0 && r.Ended == sandbox.Finished {
			t.Errorf("%.40s: %+v, error %v", code, r, err)
		}
	}
}
