package session

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/llm"
	"reverie/internal/skill"
)

// With !mode auto a room's mode changes by itself: when a person asks for it in so
// many words, when they show an error report, and back to the first mode after a
// break. Each change costs a new epoch of the prompt, so that in doubt nothing changes.
const (
	autoStay     = time.Minute     // a mode is kept for at least so long, whoever chose it
	autoCooldown = 2 * time.Minute // between two changes of its own
	autoBreak    = 3 * time.Hour   // of silence, after which the talk is about something else
	autoLongest  = 500             // characters; longer texts are material rather than wishes
)

// asks is how people ask for a mode. Phrases count as whole words, in any case; in a
// sentence with one of the negations they do not. Nobody asks for "user" in passing.
var asks = []struct {
	mode    string
	phrases []string
}{
	{"planning", []string{
		"let's plan", "lets plan", "make a plan", "help me plan", "help me make a plan", "plan this with me", "work out a plan",
		"lass uns planen", "mach einen plan", "mach mir einen plan", "erstelle einen plan", "hilf mir planen", "hilf mir beim planen",
		"hagamos un plan", "haz un plan", "hazme un plan", "ayúdame a planificar", "vamos a planificar",
		"faisons un plan", "fais un plan", "fais-moi un plan", "aide-moi à planifier", "planifions",
		"facciamo un piano", "fai un piano", "fammi un piano", "aiutami a pianificare", "pianifichiamo",
		"計画を立てて", "計画を立てよう", "計画を作って", "プランを立てて",
		"做个计划", "做一个计划", "制定计划", "制定一个计划", "帮我计划", "帮我规划", "我们来计划",
	}},
	{"developer", []string{
		"let's code", "lets code", "let's program", "write a program", "write a script", "write the code", "write me a script", "help me program", "help me code",
		"lass uns programmieren", "schreib ein programm", "schreibe ein programm", "schreib ein skript", "schreibe ein skript", "schreib den code", "hilf mir programmieren", "hilf mir beim programmieren",
		"vamos a programar", "escribe un programa", "escribe un script", "escribe el código", "ayúdame a programar",
		"programmons", "écris un programme", "écris un script", "écris le code", "aide-moi à programmer",
		"programmiamo", "scrivi un programma", "scrivi uno script", "scrivi il codice", "aiutami a programmare",
		"プログラムを書いて", "コードを書いて", "スクリプトを書いて",
		"写个程序", "写一个程序", "写个脚本", "写一个脚本", "写代码", "帮我编程",
	}},
	{"debugger", []string{
		"let's debug", "lets debug", "help me debug", "debug this", "find the bug", "find this bug", "track down this bug",
		"lass uns debuggen", "hilf mir debuggen", "hilf mir beim debuggen", "debugge das", "finde den bug", "such den bug", "finde den fehler im",
		"vamos a depurar", "ayúdame a depurar", "depura esto", "encuentra el bug", "encuentra el error en",
		"déboguons", "aide-moi à déboguer", "débogue ça", "trouve le bug", "trouve l'erreur dans",
		"aiutami a fare il debug", "facciamo il debug", "trova il bug", "trova l'errore nel",
		"デバッグして", "デバッグしよう", "バグを見つけて", "バグを探して",
		"帮我调试", "调试一下", "找出bug", "帮我找bug", "帮我找出错误",
	}},
	{"assistant", []string{
		"back to normal mode", "back to assistant mode", "assistant mode please",
		"zurück zum normalen modus", "zurück in den normalen modus", "wieder normaler modus",
		"vuelve al modo normal", "volvamos al modo normal", "reviens au mode normal", "revenons au mode normal",
		"torna alla modalità normale", "torniamo alla modalità normale",
		"普通のモードに戻って", "通常モードに戻って", "回到普通模式", "回到正常模式",
	}},
}

// negations make a sentence say the opposite, or nothing that is certain.
var negations = []string{
	"not", "no", "never", "without", "don't", "dont", "doesn't", "didn't", "can't", "won't", "isn't", "shouldn't",
	"nicht", "kein", "keine", "keinen", "nie", "ohne", "nunca", "sin", "ne", "pas", "jamais", "sans", "non", "mai", "senza",
	"ない", "ません", "不", "别", "没",
}

// errorReports are what programs print when they fail.
var errorReports = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^\s*Traceback \(most recent call last\):`),
	regexp.MustCompile(`(?m)^\s*goroutine \d+ \[[^\]]+\]:`),
	regexp.MustCompile(`(?m)^\s*Exception in thread "`),
	regexp.MustCompile(`(?m)^\s*at [\w.$<>]+ ?\([^()\n]+:\d+(:\d+)?\)\s*$`),
	regexp.MustCompile(`(?m)^\s*thread '[^'\n]*' (\(\d+\) )?panicked at `),
	regexp.MustCompile(`Segmentation fault \(core dumped\)`),
}

var (
	codeBlock = regexp.MustCompile("(?s)```.*?(```|$)|`[^`\n]*`")
	quotation = regexp.MustCompile(`(?m)^\s*>.*$`)
	sentence  = regexp.MustCompile(`[.!?;\n。！？；]+`)
)

// askedMode is the mode that texts ask for, and why; "" when none or more than one is.
func askedMode(texts []string) (name, why string) {
	for _, text := range texts {
		for _, said := range wishes(text) {
			for _, a := range asks {
				phrase := skill.Said(said, a.phrases)
				switch {
				case phrase == "" || a.mode == name:
				case name != "":
					return "", ""
				default:
					name, why = a.mode, fmt.Sprintf("“%s” was said", phrase)
				}
			}
		}
	}
	reported := func(text string) bool {
		return slices.ContainsFunc(errorReports, func(r *regexp.Regexp) bool { return r.MatchString(text) })
	}
	if name == "" && slices.ContainsFunc(texts, reported) {
		return "debugger", "an error report was shown"
	}
	return name, why
}

// wishes are the sentences of a text in which somebody may ask for something: not
// what they quote, and nothing with a negation.
func wishes(text string) []string {
	text = quotation.ReplaceAllString(codeBlock.ReplaceAllString(text, " "), "")
	if utf8.RuneCountInString(text) > autoLongest {
		return nil
	}
	text = strings.ReplaceAll(text, "’", "'")
	return slices.DeleteFunc(sentence.Split(text, -1), func(s string) bool { return skill.Said(s, negations) != "" })
}

// autoQuestion is what decides whether a mode changes by itself.
type autoQuestion struct {
	now     string    // the mode
	at      time.Time // now
	changed time.Time // when the mode last changed; zero = never
	own     time.Time // when it last changed by itself; zero = never
	texts   []string  // what was said and is to be answered
	fresh   string    // why the talk begins anew; empty = it goes on
}

// next is the mode to change to, and why; "" = it stays.
func (q autoQuestion) next() (name, why string) {
	if name, why = askedMode(q.texts); name == "" && q.fresh != "" {
		name, why = modes[0].name, q.fresh
	}
	young := func(since time.Time, least time.Duration) bool { return !since.IsZero() && q.at.Sub(since) < least }
	if name == q.now || young(q.changed, autoStay) || young(q.own, autoCooldown) {
		return "", ""
	}
	return name, why
}

// autoMode changes the mode by itself, where that is wanted and clear, before the
// messages said are answered; the room is told in a line. Doing it again after an
// interruption changes nothing more.
func (s *Session) autoMode(ctx context.Context, in Inbound, said []Inbound) error {
	now, err := s.mode(ctx)
	if err != nil || !now.auto {
		return err
	}
	q := autoQuestion{now: now.name, at: s.cfg.Now()}
	for _, m := range said {
		q.texts = append(q.texts, m.Text)
	}
	if q.fresh, err = s.freshTalk(ctx, said); err != nil {
		return err
	}
	past, err := s.switches(ctx, keptSwitches)
	if err != nil {
		return err
	}
	if len(past) > 0 {
		q.changed = past[0].at
	}
	if i := slices.IndexFunc(past, func(c modeSwitch) bool { return c.who == "" }); i >= 0 {
		q.own = past[i].at
	}
	to, why := q.next()
	if to == "" {
		return nil
	}
	// Told first: telling it twice is telling it once.
	if err := s.cfg.Transport.Say(ctx, s.room, Outgoing{Thread: s.thread, ID: "mode:" + in.ID, Notice: true,
		Text: s.text(ctx, "mode.changed", "mode", to, "why", s.words(ctx, why), "before", now.name)}); err != nil {
		return err
	}
	return s.switchMode(ctx, modeSwitch{at: q.at, from: now.name, to: to, why: why}, true)
}

// freshTalk says why with the messages said the talk begins anew; "" = it goes on.
func (s *Session) freshTalk(ctx context.Context, said []Inbound) (why string, err error) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return "", err
	}
	var first time.Time // of the messages said
	for _, m := range slices.Backward(past) {
		switch {
		case m.Role != llm.User || m.Sender == "":
		case slices.ContainsFunc(said, func(in Inbound) bool { return in.ID == m.EventID }):
			first = m.At
		case first.Sub(m.At) > autoBreak:
			return "we had not talked for a while", nil
		default:
			return "", nil
		}
	}
	return "a new conversation began", nil
}
