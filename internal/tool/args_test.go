package tool

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/llm"
	"reverie/internal/test/expect"
)

type sampleArgs struct {
	Text  string   `json:"text" doc:"d"`
	Pick  string   `json:"pick" enum:"add,list" doc:"d"`
	Count int      `json:"count" rule:"min=1,max=10" doc:"d"`
	Day   int      `json:"day" rule:"min=1" doc:"d"`
	Flag  *bool    `json:"flag" doc:"d"`
	List  []string `json:"list" doc:"d"`
}

// TestDecode lists the slips that are accepted, and the faults that are not.
func TestDecode(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		raw    string
		want   sampleArgs
		faults []string
	}{
		{raw: ``}, {raw: ` `}, {raw: `null`}, {raw: `{}`},
		{raw: `{"text":"a","pick":"add","count":5,"day":3,"flag":true}`, want: sampleArgs{"a", "add", 5, 3, &yes, nil}},
		{raw: `{"text":null,"pick":null,"count":null,"flag":null}`},
		{raw: `{"text":"","pick":"","count":"","day":"","flag":""}`},
		{raw: `{"count":"5"}`, want: sampleArgs{Count: 5}},
		{raw: `{"count":5.0}`, want: sampleArgs{Count: 5}},
		{raw: `{"count":" 5.0 "}`, want: sampleArgs{Count: 5}},
		{raw: `{"day":0}`},
		{raw: `{"flag":"True"}`, want: sampleArgs{Flag: &yes}},
		{raw: `{"flag":"false"}`, want: sampleArgs{Flag: &no}},
		{raw: `{"list":[" a ","","b"]}`, want: sampleArgs{List: []string{"a", "b"}}},
		{raw: `{"list":"a, b"}`, want: sampleArgs{List: []string{"a", "b"}}},
		{raw: `{"list":"[\"a\"]"}`, want: sampleArgs{List: []string{"a"}}},
		{raw: `{"list":[]}`}, {raw: `{"list":""}`},
		{raw: `{"list":[1]}`, faults: []string{`list: is a list; send a list of texts, such as ["one", "two"]`}},
		{raw: `{"pick":" Add "}`, want: sampleArgs{Pick: "add"}},
		{raw: `{"text":"  kept as it is "}`, want: sampleArgs{Text: "  kept as it is "}},

		{raw: `{"count":0}`},
		{raw: `{"count":11}`, faults: []string{"count: is out of range; send a whole number from 1 to 10"}},
		{raw: `{"count":"five"}`, faults: []string{`count: is the text "five"; send a whole number from 1 to 10`}},
		{raw: `{"count":2.5}`, faults: []string{`count: is the number "2.5"; send a whole number from 1 to 10`}},
		{raw: `{"count":"NaN"}`, faults: []string{`count: is the text "NaN"; send a whole number from 1 to 10`}},
		{raw: `{"text":5}`, faults: []string{`text: is the number "5"; send text in "quotes"`}},
		{raw: `{"text":["a"]}`, faults: []string{`text: is a list; send text in "quotes"`}},
		{raw: `{"flag":1}`, faults: []string{`flag: is the number "1"; send true or false`}},
		{raw: `{"pick":"remove"}`, faults: []string{`pick: "remove" is not possible; send one of add, list`}},
		{raw: `{"text":"a","text":"b"}`, want: sampleArgs{Text: "b"}},
		{raw: `{"Text":"a"}`, want: sampleArgs{Text: "a"}},
		{raw: `{"te-Xt":"a","TEXT":"b"}`, want: sampleArgs{Text: "a"}},
		{raw: `{"txt":"a"}`, faults: []string{`"txt": there is no such argument; remove it. There are: text, pick, count, day, flag, list`}},
		{raw: `{"pick":"ad"}`, faults: []string{`pick: "ad" is not possible; send one of add, list`}},
		{raw: `{"list":"a"}`, want: sampleArgs{List: []string{"a"}}},
		{raw: `{"arguments":{"text":"a"}}`, faults: []string{`"arguments": there is no such argument; remove it. There are: text, pick, count, day, flag, list`}},
		{raw: `{"text":1,"count":99,"x":2}`, faults: []string{`text: is the number "1"; send text in "quotes"`,
			"count: is out of range; send a whole number from 1 to 10", `"x": there is no such argument; remove it. There are: text, pick, count, day, flag, list`}},
		{raw: `{"text":"a"`, faults: []string{"the arguments end in the middle, as if they had been cut off; send all of them again, and keep them short"}},
		{raw: `{"text":"a"}{"text":"b"}`, faults: []string{"the arguments are not valid JSON (invalid character '{' after top-level value); send one JSON object"}},
		{raw: `{"text":"a"}}`, faults: []string{"the arguments are not valid JSON (invalid character '}' after top-level value); send one JSON object"}},
		{raw: `"hello"`, faults: []string{"the arguments must be one JSON object in braces, not a JSON string"}},
		{raw: `[{"text":"a"}]`, faults: []string{"the arguments must be one JSON object in braces, not a JSON array"}},
		{raw: `{text: "a"}`, faults: []string{"the arguments are not valid JSON (invalid character 't' looking for beginning of object key string); send one JSON object"}},
	} {
		var got sampleArgs
		found := decode(c.raw, fieldsOf(reflect.TypeFor[sampleArgs]()), reflect.ValueOf(&got).Elem())
		diff := cmp.Diff(c.faults, []string(found))
		expect.False(t, diff != "", "%s: faults (-want +got):\n%s", c.raw, diff)
		diff = cmp.Diff(c.want, got)
		expect.False(t, diff != "", "%s: (-want +got):\n%s", c.raw, diff)
		var again sampleArgs
		text := encode(fieldsOf(reflect.TypeFor[sampleArgs]()), reflect.ValueOf(got))
		if found := decode(text, fieldsOf(reflect.TypeFor[sampleArgs]()), reflect.ValueOf(&again).Elem()); len(found) > 0 || !cmp.Equal(got, again) {
			t.Errorf("%s: written as %s, which reads %+v, %v", c.raw, text, again, found)
		}
	}
}

// TestFieldsRefusesMistakes: a mistake in a tool's tags panics at start, not in a chat.
func TestFieldsRefusesMistakes(t *testing.T) {
	for _, v := range []any{
		struct {
			X string `json:"x" rule:"requird"`
		}{},
		struct {
			X []int `json:"x"`
		}{},
		struct {
			X int `json:"x" rule:"min=one"`
		}{},
	} {
		func() {
			defer func() {
				expect.False(t, recover() == nil, "%T was accepted", v)
			}()
			fieldsOf(reflect.TypeOf(v))
		}()
	}
}

// FuzzArguments: every tool answers any arguments in words.
func FuzzArguments(f *testing.F) {
	for i, e := range catalog {
		f.Add(i, e.example)
	}
	for i := range catalog {
		for _, raw := range []string{``, `{`, `"{\"path\": \"../bot.db\"}"`, "```json\n{}\n```", `{"action":"add","content":"x","schedule_type":"once","at":"in 5 minutes"}`,
			`{"path":"data/skills/\u0000"}`, `{"path":"skills","offset":"9223372036854775807","limit":1}`, `{"entry":"\ud800"}`, `{"a":1,"a":[[[]]]}`, "\xff", `{"action":"list","status":"all"}`} {
			f.Add(i, raw)
		}
	}
	w := newWorkshop(f)
	f.Fuzz(func(t *testing.T, which int, raw string) {
		e := catalog[uint(which)%uint(len(catalog))]
		res := w.Run(t.Context(), direct(), llm.ToolCall{ID: "1", Name: e.name, Arguments: raw})
		expect.False(t, strings.TrimSpace(res.Content) == "" || !utf8.ValidString(res.Content) || utf8.RuneCountInString(res.Content) > MaxResult,
			"%s(%q): %q", e.name, raw, res.Content)
		if strings.Contains(w.log.String(), "panicked") {
			t.Fatalf("%s(%q) panicked: %s", e.name, raw, w.log.String())
		}
		w.log.Reset()
	})
}
