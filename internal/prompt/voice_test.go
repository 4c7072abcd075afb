package prompt

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reverie"
	"reverie/internal/manner"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
	"reverie/internal/voice"
)

// speaks gives the world a configured voice.
func (w *world) speaks(v voice.Voice) { w.assembler.cfg.Voice = v }

// placed expects the texts in the system text, each once, in this order.
func (w *world) placed(prefix string, texts ...string) {
	w.t.Helper()
	at := -1
	for _, text := range texts {
		now := strings.Index(prefix, text)
		if now <= at || strings.Count(prefix, text) != 1 {
			w.t.Errorf("%s: %q at %d after %d, %d times, in\n%s", w.layout, text, now, at, strings.Count(prefix, text), prefix)
		}
		at = now
	}
}

// Every layout has the persona, then SOUL.md without its lines of style, then the rules that hold. They are
// the owner's words, not data. A job has the rules alone, and a sub-session nothing.
func TestVoiceInEveryLayout(t *testing.T) {
	for _, layout := range Layouts() {
		w := shippedWorld(t, layout)
		w.tier = 3
		w.speaks(voice.Voice{Persona: "creative", Character: voice.Style{"creature": "an owl", "vibe": "calm"}, Style: voice.Style{"length": "short", "language": "German"}})
		w.file("SOUL.md", "---\nlength: long\n---\nYou love {agent_name}'s maps.\n")
		w.last = nil
		p := w.send()
		told := p.Prefix + strings.Replace(p.Tail, "\nStyle:\n", "\n# Style\n", 1) // in stable each epoch says it with its first message
		w.placed(told, "# Persona\nYou are an owl. Your vibe: calm.\n## Identity\nYou are Reverie, a partner for ideas, texts and plans.", "A name for my boat?",
			"# Soul\nYou love Reverie's maps.", "# Style\nThe newest of these lists goes before other rules on style:\n- Add one light remark", "- Answer in full: ", "- Answer in this language: German.")
		w.expect(false, "length: long", "Offer two, one unexpected.", "one to three sentences", "short paragraphs", "{name}")
		w.wrong("")
		for _, s := range p.Report.Sections {
			expect.False(t, (s.ID == "persona" || s.ID == "style") && s.State != Kept, "%+v", s)
		}
		var why []string
		for _, c := range p.Report.Style {
			why = append(why, fmt.Sprint(c.Field, " ", c.Value, " ", c.Source, " ", len(c.Instead)))
		}
		expect.Equal(t, strings.Join(why, "; "), "voice playful personas/creative.md 0; formality casual personas/creative.md 0; "+
			"emoji few personas/creative.md 0; length long SOUL.md 2; proactivity high personas/creative.md 0; language German configuration 0")

		job := w.turn()
		job.IsolateJob()
		at := w.assembles(job).Prefix
		w.placed(at, "# Style\n", "- Answer in full: ")
		expect.False(t, strings.Contains(at, "# Persona"), "a job has the persona:\n%s", at)
		helper := w.turn()
		helper.Layout = minimal
		expect.False(t, strings.Contains(w.assembles(helper).Prefix, "# Style"), "a sub-session has the persona")
	}
}

// With nothing chosen there is nothing in the prompt.
func TestNoVoice(t *testing.T) {
	w := shippedWorld(t, Stable)
	w.last = nil
	p := w.send()
	w.expect(false, "# Persona", "Style:")
	expect.Equal(t, len(p.Report.Style), 0)
}

// A room's choice holds for that room from the next message on, begins an epoch, and only then. The file's
// changes do, too. A choice whose file is gone is reported.
func TestPersonaOfRoom(t *testing.T) {
	w := newWorld(t, Stable)
	w.speaks(voice.Voice{Persona: "minimal"})
	w.asks("Hello")
	w.expect(true, "You give answers.")
	w.persona = "supportive"
	w.epoch("And now?", "persona changed")
	w.expect(true, "at the person's side", "When the person tells of themselves")
	w.expect(false, "You give answers.", "Do what is asked, and stop there.")
	w.epoch("And then?", "") // send checks that this only grew
	w.persona = voice.None
	w.epoch("And now?", "persona changed")
	w.expect(false, "# Persona", "Style:")
	w.file("personas/mine.md", "Speak as {name} would.")
	w.persona = "mine"
	w.epoch("And now?", "persona changed")
	w.expect(true, "# Persona\nSpeak as Reverie would.\n")
	w.file("personas/mine.md", "---\nemoji: many\n---\nSpeak as {name} would.")
	w.epoch("And now?", "")
	w.expect(true, "Style:\nThe newest")
	w.file("personas/mine.md", "Speak as {name} would.")
	w.epoch("And now?", "")
	w.expect(true, "Style:\nNo rules of style hold any more.\n")
	w.must(os.Remove(w.path("personas/mine.md")))
	w.epoch("And now?", "persona changed")
	w.expect(false, "# Persona", "Style:")
	w.wrong("personas/mine.md: is missing; write it, or choose another persona with !persona or in the configuration")
	w.persona = ""
	w.epoch("And now?", "persona changed")
	w.expect(true, "You give answers.")
	w.wrong("personas/minimal.md: is missing; the built-in text is used")
}

// Each shipped persona has its six parts, sets fields of style, and leaves a small window its room.
func TestShippedPersonas(t *testing.T) {
	files := expect.Must(fs.Glob(reverie.Data, "personas/*.md"))(t)
	expect.Equal(t, len(files), 5)
	most := [...]int{1: 120, 320, 420, 420, 420} // persona and style together
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".md")
		var sizes []string
		for tier := 1; tier <= 5; tier++ {
			w := shippedWorld(t, Stable)
			w.tier = tier
			w.speaks(voice.Voice{Persona: name})
			w.last = nil
			p := w.send()
			w.wrong("")
			expect.Equal(t, len(p.Report.Style), 5, name)
			took := map[string]int{}
			for _, s := range p.Report.Sections {
				took[s.ID] = s.Tokens
			}
			sizes = append(sizes, fmt.Sprintf("%d+%d", took["persona"], took["style"]))
			expect.False(t, took["persona"] == 0 || took["persona"]+took["style"] > most[tier], "%s takes %s tokens in tier %d, of %d", name, sizes[tier-1], tier, most[tier])
			w.expect(true, "You are Reverie")
			w.expect(tier > 1, "## Identity\nYou are Reverie")
			w.expect(tier > 2, "## Examples of the tone")
			if tier > 1 {
				w.placed(p.Prefix, "## Identity", "## Being Helpful", "## Being Honest", "## Boundaries", "## Relationship", "## Communication")
			}
		}
		t.Logf("%-12s %s", name, strings.Join(sizes, "  "))
	}
}

// What is wrong with a file is reported with line and remedy; the rest of it counts.
func TestVoiceProblems(t *testing.T) {
	w := newWorld(t, Stable)
	w.speaks(voice.Voice{Persona: "mine"})
	w.file("SOUL.md", "---\nlength: tiny\nemoji: none\n---\nBe kind.")
	w.file("personas/mine.md", "---\nvoise: warm\n---\n<!-- section -->\n"+"Speak of ships.")
	w.asks("Hello")
	w.expect(true, "# Soul\nBe kind.", "Use words only, no emoji.", "Speak of ships")
	w.expect(false, "voise", "tiny")
	w.wrong("personas/mine.md:2: voise: unknown; write one of: voice, formality, emoji, length, proactivity, address, language\n" +
		"personas/mine.md:4: section marker not understood (no colon after section); the text after it is always on. Write <!-- section: NAME requires: tool_a, tool_b -->\n" +
		"SOUL.md:2: length: write one of: short, medium, long")
	w.must(os.Remove(w.path("personas/mine.md")))
	w.must(os.Mkdir(w.path("personas/mine.md"), 0o700))
	w.asks("Hello")
	w.wrong("personas/mine.md: cannot be read (not a regular file)\nSOUL.md:2: length: write one of: short, medium, long")
}

// The program reads SOUL.md in one place, a package that writes no file. Text from models and people is
// written under names that they give only in work folders, memory and skills.
func TestSoulIsNeverWritten(t *testing.T) {
	writes := regexp.MustCompile(`\b(os\.(WriteFile|Create|OpenFile|Rename|Remove)|store\.WriteFile|WriteDefaults)\b`)
	var names []string
	expect.OK(t, filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") ||
			strings.HasPrefix(filepath.ToSlash(file), "../../test/") {
			return err
		}
		source := string(expect.Must(os.ReadFile(file))(t))
		if strings.Contains(source, `"SOUL.md"`) {
			names = append(names, filepath.ToSlash(file))
		}
		inSection := filepath.Dir(file) == filepath.FromSlash("../../internal/prompt/section")
		expect.False(t, inSection && writes.MatchString(source), "%s writes files", file)
		return nil
	}))
	expect.NoDiff(t, names, []string{"../../internal/prompt/section/voice.go"})
	_, err := fs.Stat(reverie.Data, "SOUL.md")
	expect.False(t, err == nil, "SOUL.md is a default file, which a release updates")
}

// What was learned of the person is among what decides, with its evidence, and where the owner set the
// field, with what decides instead. Phrases to avoid stand each for itself.
func TestWhyShowsWhatWasLearned(t *testing.T) {
	w := shippedWorld(t, Stable)
	w.assembler.cfg.Manner = manner.Store{DB: w.db}
	w.speaks(voice.Voice{Style: voice.Style{"length": "long", "formality": "formal"}})
	for i, said := range []string{"Answer shorter, please.", "No emojis.", "don't say 'absolutely'", "don't say 'of course'"} {
		w.must(w.assembler.cfg.Manner.Observe(t.Context(), w.db, manner.Said{Event: fmt.Sprint("$", i), Person: testUser,
			Readers: trust.PersonReaders(testUser), Allowed: true, Text: said, At: w.now}))
	}
	var why []string
	for _, c := range w.previews().Report.Style {
		why = append(why, fmt.Sprint(c.Field, " ", c.Value, ": ", c.Source))
		expect.Equal(t, c.Rule == "", strings.Contains(c.Source, "not used"), "%+v", c)
	}
	const learned = "learned (seen 1×, last 2026-11-21): “"
	expect.NoDiff(t, why, []string{"formality formal: configuration", "length long: configuration",
		"emoji none: " + learned + "No emojis.”", "length short: " + learned + "Answer shorter, please.”; not used, as configuration decides",
		"not_say absolutely: " + learned + "don't say 'absolutely'”", "not_say of course: " + learned + "don't say 'of course'”"})
	w.private = false
	expect.Equal(t, len(w.previews().Report.Style), 2, "in a group, nothing learned counts")
}
