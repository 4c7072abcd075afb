package session

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/tool"
)

// question is what the person is asked about a: each act in plain words with its arguments, and
// which text was read. It is plain text: clients show polls without Markdown.
func (s *Session) question(ctx context.Context, a approval) chat.Outgoing {
	var b strings.Builder
	b.WriteString(s.text(ctx, "approve.ask") + "\n")
	for _, act := range a.acts {
		b.WriteString("\n• " + s.actWords(ctx, act.Act) + "\n")
		for _, line := range argumentLines(act.Call.Arguments) {
			b.WriteString("   " + line + "\n")
		}
	}
	if len(a.seen) > 0 {
		b.WriteString("\n" + s.text(ctx, "approve.seen", "seen", strings.Join(a.seen, ", ")) + "\n")
	}
	b.WriteString(s.text(ctx, "approve.how", "code", a.code, "minutes", fmt.Sprint(int(approvalTime.Minutes()))))
	return chat.Outgoing{ID: askPrefix + a.code, Thread: s.thread, Text: b.String(), Notice: true, Options: []chat.Option{
		{ID: optionOnce, Text: s.text(ctx, "approve.once")},
		{ID: optionWide, Text: s.text(ctx, "approve.wide")},
		{ID: optionNo, Text: s.text(ctx, "approve.no")},
	}}
}

// actWords says in a few words what a call does.
func (s *Session) actWords(ctx context.Context, act tool.Act) string {
	for _, key := range []string{"act." + act.Call.Name + "." + act.Action, "act." + act.Call.Name} {
		if text := s.text(ctx, key); text != key {
			return text
		}
	}
	return s.text(ctx, "act.tool", "tool", strings.TrimSpace(act.Call.Name+" "+act.Action))
}

// argumentLines are the arguments of a call, each on a line of its own.
func argumentLines(arguments string) []string {
	var args map[string]any
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return []string{visibleText(arguments)}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if name == "action" { // said in words
			continue
		}
		text, ok := args[name].(string)
		if !ok {
			raw, _ := json.Marshal(args[name]) //nolint:errchkjson // it came from JSON
			text = string(raw)
		}
		lines = append(lines, visibleText(name)+": “"+visibleText(text)+"”")
	}
	return lines
}

// shownRunes is how much of a result is shown.
const shownRunes = 300

// visibleText is text in one line, with nothing in it that a person would not see.
func visibleText(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '\ufe0e', r == '\ufe0f': // of emoji
			return -1
		case r == '\u2800', // a Braille blank
			unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			return '�'
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// outcome says what came of the acts, after the text key.
func (s *Session) outcome(ctx context.Context, a approval, key string) string {
	lines := []string{s.text(ctx, key)}
	for _, act := range a.acts {
		if !act.Done {
			continue
		}
		key := "approve.did"
		if act.Failed {
			key = "approve.failed"
		}
		lines = append(lines, "- "+s.text(ctx, key, "act", s.actWords(ctx, act.Act), "result", history.OneLine(act.Result, shownRunes)))
	}
	return strings.Join(lines, "\n")
}

// Approve is the command !approve: CODE, or CODE conversation.
func (s *Session) Approve(ctx context.Context, in chat.Inbound, args string) (string, error) {
	code, rest, _ := strings.Cut(args, " ")
	option := optionOnce
	switch rest = strings.ToLower(strings.TrimSpace(rest)); {
	case code == "" || rest != "" && rest != optionWide:
		return s.text(ctx, "approve.usage"), nil
	case rest == optionWide:
		option = optionWide
	}
	text, err := s.answerApproval(ctx, in, code, option)
	if text == "" {
		text = s.text(ctx, "approve.thanks")
	}
	return text, err
}

// Deny is the command !deny.
func (s *Session) Deny(ctx context.Context, in chat.Inbound, args string) (string, error) {
	if args == "" {
		return s.text(ctx, "approve.usage"), nil
	}
	return s.answerApproval(ctx, in, args, optionNo)
}

// vote takes an answer in a poll.
func (s *Session) vote(ctx context.Context, in chat.Inbound) error {
	code, question := strings.CutPrefix(in.Target, askPrefix)
	if !question || !slices.Contains([]string{optionOnce, optionWide, optionNo}, in.Text) {
		return nil
	}
	text, err := s.answerApproval(ctx, in, code, in.Text)
	if err != nil || text == "" {
		return err
	}
	all, err := s.approvals(ctx, s.cfg.DB, `WHERE code = ?`, code)
	if err != nil {
		return err
	}
	thread := s.thread // a vote does not say in which thread its poll stands
	if len(all) == 1 {
		thread = all[0].talk.Thread()
	}
	return s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: "vote:" + in.ID, Thread: thread, Text: text, Notice: true})
}
