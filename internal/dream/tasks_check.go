package dream

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/task"
)

var errNoArray = errors.New("it is no JSON array")

const (
	urgent    = 2                   // tasks of this priority are not made less urgent, and not set aside
	farthest  = 2                   // how far a priority moves at once
	untouched = 7 * 24 * time.Hour  // a priority is as somebody wants it for so long
	forgotten = 90 * 24 * time.Hour // nobody has spoken of it
)

// Why an action is not done.
const (
	refusedTask      = "no such task in this room"
	refusedTwice     = "two actions for one task"
	refusedAction    = "no such action"
	refusedSchedule  = "the task is scheduled"
	refusedEvidence  = "nothing that was said shows that it is done"
	refusedSame      = "the two do not ask for the same"
	refusedPriority  = "the priority may not be moved so"
	refusedWords     = "the words say something else"
	refusedStale     = "it is not stale"
	refusedRepeated  = "it was done before, or taken back"
	refusedTooMuch   = "too much for one night"
	refusedOtherUser = "two people asked for them"
)

// decideTasks plans those of actions that may be done.
func (n *night) decideTasks(r *taskRoom, shown []*openTask, said []witness, actions []taskAction) {
	times := map[string]int{}
	for _, a := range actions {
		if a.Action != "keep" {
			times[bare(a.Task)]++
		}
	}
	refused := map[string]int{}
	most := max(3, len(r.tasks)/4)
	for _, a := range actions {
		if a.Action == "keep" {
			continue
		}
		i := slices.IndexFunc(shown, func(t *openTask) bool { return t.ID == bare(a.Task) })
		why := ""
		switch {
		case i < 0:
			why = refusedTask
		case times[bare(a.Task)] > 1:
			why = refusedTwice
		case shown[i].gone: // it is merged already
		case most == 0:
			why = refusedTooMuch
		default:
			if why = n.decideTask(r, shown, said, shown[i], a); why == "" {
				most--
			}
		}
		if why != "" {
			refused[why]++
		}
	}
	for _, why := range sortedKeys(refused) {
		n.note("%d of what the model would do to tasks was left out: %s", refused[why], why)
	}
}

func sortedKeys(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func bare(id string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(id), "#"))
}

// decideTask plans a, or says why not.
func (n *night) decideTask(r *taskRoom, shown []*openTask, said []witness, t *openTask, a taskAction) (why string) {
	switch strings.ToLower(strings.TrimSpace(a.Action)) {
	case "complete":
		return n.completeTask(r, said, t, a)
	case "merge":
		i := slices.IndexFunc(shown, func(o *openTask) bool { return o.ID == bare(a.Into) })
		if i < 0 || shown[i] == t {
			return refusedTask
		}
		return n.mergeLike(r, t, shown[i])
	case "priority":
		return n.moveTask(r, t, int(a.Priority))
	case "rephrase":
		return n.rephraseTask(r, t, a.Content)
	case "update":
		if a.Content != "" {
			return n.rephraseTask(r, t, a.Content)
		}
		return n.moveTask(r, t, int(a.Priority))
	case "pause", "archive", "delete":
		return n.pauseTask(r, t)
	}
	return refusedAction
}

// change adds a step about t to the plan, unless a dream did the same to it of late or
// somebody took that back.
func (n *night) change(r *taskRoom, t *openTask, s task.Tidying, to string, what i18n.Text) string {
	if n.chores.done(string(s.Kind), t.ID, n.now.Add(-taskRest)) {
		return refusedRepeated
	}
	t.gone = true
	s.Room, s.ID, s.Updated = r.id, t.ID, t.Updated
	n.chores.tasks = append(n.chores.tasks, plannedTask{s, TaskChange{Scope: r.scope, Room: r.id, ID: t.ID, Text: t.Content, Kind: s.Kind, To: to, What: what}})
	return ""
}

// completeTask completes t if what the model quotes was said by a person since, of
// all that t is about, as of something that is done.
func (n *night) completeTask(r *taskRoom, said []witness, t *openTask, a taskAction) string {
	if !t.plain() {
		return refusedSchedule
	}
	i := int(a.Message) - 1
	if i < 0 || i >= len(said) {
		return refusedEvidence
	}
	w := said[i]
	if _, why := findQuote(w.text, a.Quote); why != "" || !w.at.After(t.Created) {
		return refusedEvidence
	}
	sentence := sentenceWith(w.text, a.Quote)
	names := namer{numbers: map[string]int32{}}
	about, all := n.speaksOf(&names, t, sentence)
	if about == 0 {
		return refusedEvidence
	}
	later := slices.ContainsFunc(said[i+1:], func(o witness) bool { // perhaps it was taken back
		_, whole := n.speaksOf(&names, t, o.text)
		return whole
	})
	if !all || later || !saysDone(sentence) {
		if !unsaid.MatchString(lower(sentence)) {
			n.propose(r.scope, "task", t.ID, "", i18n.New("why.is_it_done", "task", t.Content, "id", t.ID, "who", w.name(n.d.cfg.Location)))
		}
		return refusedEvidence
	}
	by := w.name(n.d.cfg.Location)
	return n.change(r, t, task.Tidying{Kind: task.TidyComplete, Reason: "It is done by " + by.String()}, "", i18n.New("why.task_done", "why", i18n.New("why.done_by", "who", by)))
}

// speaksOf counts the words of t that say something and stand in text, in whatever form,
// and says whether all do.
func (n *night) speaksOf(names *namer, t *openTask, text string) (count int, all bool) {
	there := map[int32]bool{}
	for _, tok := range names.tokens(unfold(text)) {
		for _, s := range tok.stems {
			there[s] = true
		}
	}
	wanted := 0
	for _, tok := range names.tokens(unfold(t.Content)) {
		if tok.small || polite[tok.text] {
			continue
		}
		wanted++
		if slices.ContainsFunc(tok.stems, func(s int32) bool { return there[s] }) {
			count++
		}
	}
	return count, wanted > 0 && count == wanted && len(memory.Lost(asTask(t.Content), text)) == 0
}

// mergeLike merges a with b if both ask for the same in the same words but for their
// order and form; what is less alike is proposed.
func (n *night) mergeLike(r *taskRoom, a, b *openTask) string {
	if !a.plain() || !b.plain() {
		return refusedSchedule
	}
	if a.User != b.User {
		return refusedOtherUser
	}
	same := a.said.protected == b.said.protected && a.said.negative == b.said.negative && !a.said.compound && !b.said.compound
	switch {
	case same && slices.Equal(filled(&a.said), filled(&b.said)):
		if !n.mergeTasks(r, a, b) {
			return refusedRepeated
		}
		return ""
	case same && share(a.said.stems, b.said.stems) >= .5:
		n.propose(r.scope, "task", min(a.ID, b.ID), max(a.ID, b.ID), i18n.New("why.ask_the_same", "first", a.Content, "id", a.ID, "second", b.Content, "other", b.ID))
	}
	return refusedSame
}

// filled are the stems of s without those of filling words.
func filled(s *signature) []int32 {
	var out []int32
	for _, t := range s.tokens {
		if !t.small && !polite[t.text] {
			out = append(out, t.stem)
		}
	}
	return unique(out)
}

// mergeTasks plans that the one of a and b stays that is more urgent, or older.
func (n *night) mergeTasks(r *taskRoom, a, b *openTask) bool {
	if a.gone || b.gone || !a.plain() || !b.plain() || a.User != b.User {
		return false
	}
	if a.Priority < b.Priority || a.Priority == b.Priority && a.Created.Before(b.Created) {
		a, b = b, a
	}
	if n.change(r, a, task.Tidying{Kind: task.TidyMerge, Into: b.ID, IntoAt: b.Updated, Reason: "#" + b.ID + " asks for the same"}, b.ID, i18n.New("why.task_same", "id", b.ID)) != "" {
		return false
	}
	b.gone = true // what else is to be done to it waits
	return true
}

// moveTask gives t another priority, if that is near to the one it has.
func (n *night) moveTask(r *taskRoom, t *openTask, to int) string {
	if to < 1 || to > 10 || to == t.Priority || to-t.Priority > farthest || t.Priority-to > farthest || to > t.Priority && t.Priority <= urgent || n.now.Sub(t.Updated) < untouched {
		return refusedPriority
	}
	return n.change(r, t, task.Tidying{Kind: task.TidyPriority, Priority: to}, strconv.Itoa(to), i18n.New("why.task_priority", "to", to, "before", t.Priority))
}

// rephraseTask gives t fewer words, if only filling ones go.
func (n *night) rephraseTask(r *taskRoom, t *openTask, to string) string {
	if !t.plain() {
		return refusedSchedule
	}
	to = strings.Join(strings.Fields(to), " ")
	names := namer{numbers: map[string]int32{}}
	before, after := asTask(t.Content), asTask(to)
	was, is := names.sign(memory.Entry{Text: before}), names.sign(memory.Entry{Text: after})
	if to == "" || len([]rune(to)) >= len([]rune(t.Content)) || was.negative != is.negative || was.hedged != is.hedged ||
		!slices.Equal(filled(&was), filled(&is)) || !slices.Equal(order(&was), order(&is)) || len(memory.Lost(before, after))+len(memory.Lost(after, before)) > 0 {
		return refusedWords
	}
	return n.change(r, t, task.Tidying{Kind: task.TidyContent, Content: to}, to, i18n.New("why.task_now", "text", to))
}

// order are the words of s that relate others to each other, in their order: from, to,
// before, without.
func order(s *signature) []string {
	var out []string
	for _, t := range s.tokens {
		if !articles[t.text] && !polite[t.text] {
			out = append(out, t.text)
		}
	}
	return out
}

// pauseTask sets t aside if nobody has touched it or spoken of it for long.
func (n *night) pauseTask(r *taskRoom, t *openTask) string {
	switch {
	case !t.plain():
		return refusedSchedule
	case t.Priority <= urgent || n.now.Sub(t.Updated) < forgotten || n.now.Sub(t.Created) < forgotten:
		return refusedStale
	}
	names := namer{numbers: map[string]int32{}}
	for _, w := range r.witnesses {
		if about, _ := n.speaksOf(&names, t, w.text); about > 0 && n.now.Sub(w.at) < forgotten {
			return refusedStale
		}
	}
	return n.change(r, t, task.Tidying{Kind: task.TidyPause, Reason: "Nobody has spoken of it since " + t.Updated.In(n.d.cfg.Location).Format(time.DateOnly) + "; resume it if it is still to be done"}, "", i18n.New("why.task_aside", "why", i18n.New("why.not_spoken_of")))
}

// polite are words that say nothing about what is to be done.
var polite = wordSet(`please remember remind reminder task todo need needs must should have has to bitte daran denken erinnern erinnere aufgabe muss müssen soll sollen sollte noch
s'il vous plaît merci tâche por favor tarea recordar per favore compito ricordare`)

func lower(text string) string {
	return " " + strings.Join(strings.Fields(strings.ToLower(strings.ReplaceAll(text, "’", "'"))), " ") + " "
}

// sentenceWith is the sentences of text in which quote stands, all if it cannot be told.
func sentenceWith(text, quote string) string {
	want := plainText(quote)
	for _, line := range strings.Split(text, "\n") {
		start := 0
		for _, end := range append(taskSentence.FindAllStringIndex(line, -1), []int{len(line), len(line)}) {
			if s := line[start:end[1]]; strings.Contains(plainText(s), want) {
				return s
			}
			start = end[1]
		}
	}
	return text
}

var taskSentence = regexp.MustCompile(`[.!?]+(?:\s+|$)|[。！？]+`)

// saysDone reports whether a sentence tells of something as done: no question, no wish,
// no plan, nothing that is not so.
func saysDone(sentence string) bool {
	low := lower(sentence)
	return negations(low) == 0 && !unsaid.MatchString(low) && done.MatchString(low)
}

var (
	// What is asked for, planned, wished or doubted.
	unsaid = regexp.MustCompile(`[?？吗]|か。?\s*$|(?:^|[^\p{L}'])(?:please|remind|remember|don't forget|will|'ll|would|could|should|shall|must|need|needs|needed|has to|have to|had to|going to|gonna|want|wants|wanted|plan|plans|planned|` +
		`hope|hopes|try|tries|tried|if|when|once|until|unless|before|tomorrow|later|soon|almost|nearly|half|partly|partially|maybe|perhaps|probably|might|may|still|yet|forgot|forgotten|failed|asked|supposed|to be|wish|someone else|` +
		`bitte|erinnere|erinnern|wird|werde|werden|würde|könnte|sollte|soll|sollen|muss|musst|müssen|will|wollte|möchte|plant|hoffe|versuche|versucht|wenn|falls|sobald|bis|bevor|morgen|später|bald|fast|halb|teilweise|vielleicht|wohl|noch|vergessen|gebeten|angeblich|zu \p{L}+en|` +
		`demain|bientôt|si|quand|peut-être|presque|dois|doit|devrait|veux|rappelle|oublié|mañana|pronto|quizás|casi|debo|debe|quiero|hay que|olvidé|olvidado|domani|presto|forse|quasi|devo|deve|voglio|dimenticato)(?:$|[^\p{L}'])|` +
		`明天|打算|可能|还没|還沒|忘|请|請|ください|つもり|かも|忘れ`)
	// What tells that something is done.
	done = regexp.MustCompile(`(?:^|[^\p{L}'])(?:done|finished|completed|sorted|settled|taken care of|took care of|` +
		`(?:i|we|he|she|they|it|\p{L}+)(?:'ve|'s| have| has| was| were| is| are| got| been| already| just| finally| now)* (?:\p{L}+[^e\P{L}]ed|` + englishPast + `)|` +
		`erledigt|fertig|abgeschlossen|gemacht|getan|\p{L}*ge\p{L}{2,}t|` +
		`(?:habe|hab|hat|haben|ist|sind|bin|war|waren|wurde|wurden) (?:.* )?(?:\p{L}*ge\p{L}{2,}en|(?:be|ver|er|ent|zer|über|unter|wider)\p{L}{3,}(?:t|en)|\p{L}{3,}iert)|` +
		`fait|faite|terminé|terminée|fini|finie|(?:j'ai|ai|a|ont|avons|est) \p{L}+(?:é|ée|i|ie|u|ue)s?|hecho|hecha|listo|lista|(?:he|ha|han|hemos) \p{L}+(?:ado|ido)|fatto|fatta|finito|finita|(?:ho|ha|hanno|abbiamo) \p{L}+(?:ato|uto|ito))(?:$|[^\p{L}'])|` +
		`了|已经|已經|完成|好了|ました|済み|終わ|した`)
)

const englishPast = `bought|paid|sent|wrote|written|took|taken|brought|made|met|told|fed|got|went|gone|did|gave|given|found|sold|spoke|spoken|drove|left|chose|hung|kept|swept|threw|thrown|put|cut|set|rang|read|built|dug|held|lent|shut|spent|taught|won|done`

// unfold gives forms of verbs that are made by more than an ending the words that stems
// know: bought, angerufen.
func unfold(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		plain := strings.ToLower(strings.Trim(w, ".,;:!?\"'()"))
		if base := irregular[plain]; base != "" {
			words[i] = w + " " + base
			continue
		}
		if m := participle.FindStringSubmatch(plain); m != nil {
			words[i] = w + " " + m[1] + infinitive(m[2])
		} else if m := joined.FindStringSubmatch(plain); m != nil {
			words[i] = w + " " + infinitive(plain)
		}
	}
	return strings.Join(words, " ")
}

// German participles: angerufen is of anrufen, gekauft of kaufen, bezahlt of bezahlen.
var (
	participle = regexp.MustCompile(`^(ab|an|auf|aus|bei|ein|fest|frei|her|hin|los|mit|nach|um|vor|weg|weiter|zu|zurück|zusammen)?ge(\p{L}{3,}(?:t|en))$`)
	joined     = regexp.MustCompile(`^(?:be|ver|er|ent|zer|über|unter|ge)\p{L}{3,}t$|^\p{L}{3,}iert$`)
)

func infinitive(past string) string {
	stem, weak := strings.CutSuffix(past, "t")
	if !weak {
		return past
	}
	if strings.HasSuffix(stem, "te") || strings.HasSuffix(stem, "de") { // gearbeitet
		stem = stem[:len(stem)-1]
	}
	return stem + "en"
}

// asTask is text with the word that it begins with, mostly what is to be done, written
// small: it is no name.
func asTask(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	word, _, _ := strings.Cut(text, " ")
	if strings.ContainsFunc(word[min(size, len(word)):], func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) }) {
		return text
	}
	return string(unicode.ToLower(r)) + text[size:]
}

var irregular = map[string]string{
	"bought": "buy", "paid": "pay", "sent": "send", "wrote": "write", "written": "write", "took": "take", "taken": "take", "brought": "bring", "made": "make", "met": "meet", "told": "tell",
	"fed": "feed", "got": "get", "went": "go", "gone": "go", "did": "do", "done": "do", "gave": "give", "given": "give", "found": "find", "sold": "sell", "spoke": "speak", "spoken": "speak",
	"drove": "drive", "left": "leave", "chose": "choose", "hung": "hang", "kept": "keep", "swept": "sweep", "threw": "throw", "thrown": "throw", "rang": "ring", "built": "build", "dug": "dig",
	"held": "hold", "lent": "lend", "taught": "teach", "spent": "spend", "won": "win",
	"geschrieben": "schreiben", "gebracht": "bringen", "gegossen": "gießen", "überwiesen": "überweisen", "gefunden": "finden", "gesprochen": "sprechen", "genommen": "nehmen", "gegangen": "gehen",
	"gestrichen": "streichen", "unterschrieben": "unterschreiben", "abgegeben": "abgeben", "eingeworfen": "einwerfen", "abgeschrieben": "abschreiben", "mitgebracht": "mitbringen", "aufgeschrieben": "aufschreiben",
	"weggebracht": "wegbringen", "getroffen": "treffen", "geschnitten": "schneiden", "besprochen": "besprechen", "angeboten": "anbieten", "abgebrochen": "abbrechen", "getan": "tun",
}
