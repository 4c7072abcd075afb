package memory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"reverie/internal/trust"
)

// mostMerged is how many entries can become one.
const mostMerged = 50

// Merge puts one new entry with text in the place of the entries ids, as far as a
// may do that, and returns it. The old ones are Merged, and By names the new one; one
// Undo takes all of it back. actor is who wants it: a person, or the part of the
// program that comes to do it by itself, so that the last change of a person stays
// another one. One id is enough: that entry is said in fewer words.
//
// A model writes text, and nobody may look at it, so it is refused with a TextError
// that says what to change, and nothing is changed, unless
//   - a may see all of ids, they are of one scope, and none is pinned or a line of a
//     conversation; what is shared came from the actor of a;
//   - text is shorter than they are together, holds what is Protected in each of
//     them, and no number, code or address besides; says not if one of them does;
//   - a third of what each says stands in text, in any form; of what a person asked
//     to remember or wrote into a file, all of it, however often it was merged since.
func (s *Store) Merge(ctx context.Context, a Access, ids []string, text, actor string) (merged Entry, err error) {
	if text, err = clean(text); err != nil {
		return Entry{}, err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) == 0 || len(ids) > mostMerged {
		return Entry{}, textErrorf("%d memories cannot become one: send the ids of 1 to %d", len(ids), mostMerged)
	}
	first, err := s.Get(ctx, a, ids[0])
	if errors.Is(err, ErrNotFound) {
		return Entry{}, noSuch(ids[0])
	}
	if err != nil {
		return Entry{}, err
	}
	_, err = s.write(ctx, actor, []Scope{first.Scope}, func(c *change) error {
		old, err := mergeable(c, a, ids)
		if err != nil {
			return err
		}
		if err := s.same(c, old, text); err != nil {
			return err
		}
		merged, err = c.add(asOne(old, text, a.Integrity))
		for i := 0; err == nil && i < len(old); i++ {
			after := old[i]
			after.State, after.By = Merged, merged.ID
			err = c.setAll(old[i], after, "merge")
		}
		return err
	})
	if err != nil {
		return Entry{}, err
	}
	return merged, nil
}

// Mergeable lists the entries that Merge may put together on behalf of a: those
// that stand in files, in their order.
func (s *Store) Mergeable(ctx context.Context, a Access) ([]Entry, error) {
	all, err := s.Entries(ctx, a.Scopes...)
	if err != nil && len(all) == 0 {
		return nil, err
	}
	var out []Entry
	for _, e := range all {
		why, err := whyNot(ctx, s.db, a, e)
		if err != nil {
			return nil, err
		}
		if why == "" {
			out = append(out, e)
		}
	}
	return out, nil
}

func noSuch(id string) error { return textErrorf("%s: %v", id, ErrNotFound) }

// whyNot says why e cannot be merged on behalf of a, or "".
func whyNot(ctx context.Context, db queryer, a Access, e Entry) (string, error) {
	if ok, err := stands(ctx, db, e.ID); err != nil || !ok {
		return ErrNotFound.Error(), err
	}
	switch {
	case !a.sees(e.Scope) || e.State != Active:
		return ErrNotFound.Error(), nil
	case e.Pinned:
		return "is pinned: leave it as it is", nil
	case e.Conversation != "":
		return "is a line of a conversation: leave it as it is", nil
	case e.Scope == Shared && !a.All:
		// Whoever shared something may take it back, so it stays by itself.
		if from, err := cameFrom(ctx, db, e.ID); err != nil || from != a.Actor {
			return "was shared by somebody else: leave it as it is", err
		}
	}
	return "", nil
}

// mergeable reads the entries ids, the oldest first, if they may become one.
func mergeable(c *change, a Access, ids []string) ([]Entry, error) {
	old, err := entries(c.ctx, c.tx, `WHERE id IN (`+strings.TrimSuffix(strings.Repeat("?, ", len(ids)), ", ")+`) ORDER BY n`, anys(ids)...)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(old, func(e Entry) bool { return e.ID == id }) {
			return nil, noSuch(id)
		}
	}
	for _, e := range old {
		why, err := whyNot(c.ctx, c.tx, a, e)
		if err != nil {
			return nil, err
		}
		if why != "" {
			return nil, textErrorf("%s: %s", e.ID, why)
		}
	}
	for _, e := range old {
		if e.Scope != old[0].Scope {
			return nil, textErrorf("%s and %s belong to different people or rooms: they stay apart", old[0].ID, e.ID)
		}
	}
	return old, nil
}

// asOne is the entry that takes the place of old: what all of them have in
// common, as old as the newest. author is the integrity of whoever wrote text, and the
// result is trusted no more than that or any of old.
func asOne(old []Entry, text string, author trust.Integrity) Entry {
	e := Entry{Scope: old[0].Scope, Text: text, Source: DreamingMerge, Integrity: author, Subject: old[0].Subject, Kind: old[0].Kind,
		ValidFrom: old[0].ValidFrom, ValidTo: old[0].ValidTo}
	for _, o := range old {
		if o.Subject != e.Subject {
			e.Subject = ""
		}
		if o.Kind != e.Kind {
			e.Kind = Fact
		}
		if !o.ValidFrom.Equal(old[0].ValidFrom) || !o.ValidTo.Equal(old[0].ValidTo) {
			e.ValidFrom, e.ValidTo = time.Time{}, time.Time{}
		}
		if o.ObservedAt.After(e.ObservedAt) {
			e.ObservedAt = o.ObservedAt
		}
		e.Integrity = min(e.Integrity, o.Integrity)
		e.Hits += o.Hits
		if o.LastHit.After(e.LastHit) {
			e.LastHit = o.LastHit
		}
	}
	return e
}

// same refuses a text that does not say what old says.
func (s *Store) same(c *change, old []Entry, text string) error {
	salt, err := readSalt(c.ctx, c.tx)
	if err != nil {
		return err
	}
	if forgotten, err := isForgotten(c.ctx, c.tx, salt, old[0].Scope, text); err != nil || forgotten {
		return errors.Join(err, ErrForgotten)
	}
	known, err := sameFact(c, Entry{Scope: old[0].Scope, Text: text})
	if err != nil {
		return err
	}
	if known != nil && !slices.ContainsFunc(old, func(e Entry) bool { return e.ID == known.ID }) {
		return textErrorf("%s says exactly that already: send its id with the others", known.ID)
	}
	size, said := 0, ""
	for _, e := range old {
		size += utf8.RuneCountInString(e.Text)
		said += e.Text + "\n"
	}
	if n := utf8.RuneCountInString(text); n >= size {
		return textErrorf("the text has %d characters and must have fewer than the %d of what it replaces", n, size)
	}
	for _, token := range tokens(text) {
		if strings.ContainsFunc(token, func(r rune) bool { return unicode.IsNumber(r) || r == '@' || r == '/' }) && !within(token, levelled(said)) {
			return textErrorf("the text says %q, and none of these memories does: leave it out", token)
		}
	}
	return s.keepsAll(c, old, text)
}

func (s *Store) keepsAll(c *change, old []Entry, text string) error {
	words := &s.index.words
	forms := words.everyForm(text)
	for _, e := range old {
		if gone := slices.Concat(unkept(e.Text, text), Lost(e.Text, text)); len(gone) > 0 {
			return textErrorf("%s: the text must also say %s", e.ID, quotedList(slices.Compact(slices.Sorted(slices.Values(gone)))))
		}
		if denies(e.Text) && !denies(text) {
			return textErrorf("%s says that something is not so: the text must say that, too", e.ID)
		}
		if missing, all := words.unsaid(e.Text, forms); 3*len(missing) > 2*all {
			return textErrorf("%s: hardly anything of it is in the text: keep %s, or leave this id out", e.ID, quotedList(missing))
		}
		own, err := ownWords(c.ctx, c.tx, e)
		if err != nil {
			return err
		}
		for _, said := range own {
			if missing, _ := words.unsaid(said, forms); len(missing) > 0 {
				return textErrorf("%s holds a person's own words: the text must also say %s, or leave this id out", e.ID, quotedList(missing))
			}
		}
	}
	return nil
}

// ownWords are the words of people that e is, or was put together from.
func ownWords(ctx context.Context, db queryer, e Entry) ([]string, error) {
	from, err := origin(ctx, db, e)
	if err != nil {
		return nil, err
	}
	var all []string
	if from == UserExplicit || from == FromFile {
		all = []string{e.Text}
	}
	parts, err := entries(ctx, db, `WHERE by_id = ? AND state = 'merged' ORDER BY n`, e.ID)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		own, err := ownWords(ctx, db, p)
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
	}
	return all, nil
}

// unsaid lists the words of text of which no form is among forms, as they stand
// there, and how many words there are that say something.
func (a *analyser) unsaid(text string, forms map[string]bool) (missing []string, all int) {
	ws := wordsOnce(text)
	langs := detect(ws)
	for _, w := range ws {
		f := a.forms(w, langs)
		if len(f) == 0 || isStop(w, langs) {
			continue
		}
		all++
		if !slices.ContainsFunc(f, func(form string) bool { return forms[form] }) {
			missing = append(missing, w.text)
		}
	}
	return missing, all
}

// wordsOnce is the words of text, each once, without pairs of Han characters:
// another word order would make others.
func wordsOnce(text string) []word {
	seen := map[string]bool{}
	return slices.DeleteFunc(words(text), func(w word) bool {
		was := seen[w.text]
		seen[w.text] = true
		return was || w.ideo && utf8.RuneCountInString(w.text) > 1 && strings.ContainsFunc(w.text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
	})
}

// everyForm is the forms of all words of text.
func (a *analyser) everyForm(text string) map[string]bool {
	out := map[string]bool{}
	ws := words(text)
	langs := detect(ws)
	for _, w := range ws {
		for _, f := range a.forms(w, langs) {
			out[f] = true
		}
	}
	return out
}

// denies reports whether text says that something is not so.
func denies(text string) bool {
	return slices.ContainsFunc(words(text), func(w word) bool { return negations[w.text] || strings.HasSuffix(w.text, "n't") })
}

// quotedList is the first of words, for a sentence.
func quotedList(words []string) string {
	const most = 12
	list := `"` + strings.Join(words[:min(len(words), most)], `", "`) + `"`
	if len(words) > most {
		list += " …"
	}
	return list
}
