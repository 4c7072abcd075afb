package section

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"reverie"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// Every language has a text for every rule, for the same tools, in the table's order, of at most
// about 60 tokens.
func TestSteeringWords(t *testing.T) {
	var names []string
	for _, r := range rules {
		names = append(names, r.name)
	}
	words := func(language string) ([]baseSection, []store.Problem) {
		all, problems := parseBase((&Sources{Dir: t.TempDir(), Defaults: reverie.Data}).read("prompts/steering/"+language+".txt").text, []string{"append_memory", "task"})
		return slices.DeleteFunc(all, func(s baseSection) bool { return s.line == 0 }), problems
	}
	english, _ := words("en")
	seen := map[string]string{}
	for _, language := range []string{"en", "de", "es", "fr", "it", "ja", "zh"} {
		sections, problems := words(language)
		expect.Len(t, problems, 0, language)
		var got []string
		var sizes []int
		for i, s := range sections {
			got = append(got, s.name)
			n := utf8.RuneCountInString(s.text)
			sizes = append(sizes, n)
			expect.False(t, n == 0 || n > maxWords || strings.Contains(s.text, "\n"), "%s, %s: %d characters of one line: %q", language, s.name, n, s.text)
			if i < len(english) && !slices.Equal(s.any, english[i].any) {
				t.Errorf("%s, %s requires %v, in English %v", language, s.name, s.any, english[i].any)
			}
			expect.Equal(t, seen[s.text], "", "%s, %s says what says", language, s.name)
			seen[s.text] = language + ", " + s.name
		}
		expect.NoDiff(t, got, names, "%s (-table +file)", language)
		expect.False(t, slices.Max(sizes) > 240, "%s: one is longer than about 60 tokens: %v", language, sizes)
	}
}

// Requests to remember, words about oneself and claims to have remembered are distinguished from
// lookalikes.
func TestSteeringCues(t *testing.T) {
	says := func(what string, found func(string) bool, yes, no []string) {
		for _, s := range yes {
			expect.False(t, !found(s), "%q: not %s", s, what)
		}
		for _, s := range no {
			expect.False(t, found(s), "%q: %s", s, what)
		}
	}
	says("asks to keep", asksToRemember,
		[]string{"REMEMBER THAT I like tea", "please, don’t forget the milk", "Merk dir das!", "Recuérdame llamar a Ana", "N'oublie pas le lait", "Ricordati il latte", "覚えておいて", "请记住我喜欢茶"},
		[]string{"Do you remember that film?", "Remembering is hard", "I forgot it", "Hast du dir das gemerkt?", "覚えていますか", "Unforgettable"})
	says("personal", personal,
		[]string{"My cat is hungry", "Ich habe Hunger", "Vivo en Brno", "J'aime le thé", "Mi piace il tè", "私は茶が好き", "我喜欢茶",
			"I work in Brno", "call me Al", "Nenn mich Al", "Trabajo en Brno", "Llámame Al", "Appelle-moi Al", "Chiamami Al", "叫我小王"},
		[]string{"Mystery", "How does it work?", "Why is it so?", "Mount it", "What about Ada?"})
	says("promises", promises,
		[]string{"OK, I'll remember that!", "Das merke ich mir.", "Lo recordaré.", "C'est noté !", "Me lo ricorderò.", "覚えておきます。", "好的，我会记住。"},
		[]string{"I remember your sister.", "It is noted in the book", "Ich erinnere mich nicht"})
}
