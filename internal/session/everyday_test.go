package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/test/expect"
)

// act is a call, and the text in the rows or files that it changes.
type act struct{ call, want string }

func todo(what string) act { return act{fmt.Sprintf(`task {"action":"add","content":%q}`, what), what} }

func alarm(what, at string) act {
	return act{fmt.Sprintf(`task {"action":"add","content":%q,"schedule_type":"daily","at":%q}`, what, at), what}
}

func note(what string) act { return act{fmt.Sprintf(`append_memory {"entry":%q}`, what), what} }

func aim(what string) act { return act{fmt.Sprintf(`goal {"action":"create","text":%q}`, what), what} }

func howTo(name, text string) act {
	return act{fmt.Sprintf(`add_skill {"skill_name":%q,"summary":%q,"documentation":%q}`, name, "About "+name, text), text}
}

func look(what string) act { return act{fmt.Sprintf(`spawn_sub_session {"objective":%q}`, what), what} }

// step is one message of a person with its attachments and requests.
type step struct {
	text string
	with with
	acts []act
}

// with is an attachment of a message: a file, a page, a picture or a quote.
type with struct{ kind, name, text string }

var (
	recipe  = with{"file", "recipe.txt", "Pancakes: flour, milk, three eggs, butter, sugar."}
	minutes = with{"file", "minutes.pdf", "Anna writes to the bank. Ben books the hall. Cleo asks for a price."}
	page    = with{"file", "trip.html", "<html><body><h1>Brno by train</h1><p>Leaves at 8:15, back at 19:40.</p></body></html>"}
	letter  = with{"file", "letter.txt", "Your contract ends on 31 May. Write to us by the end of April."}
	photo   = with{"picture", "fridge.png", ""}
	fred    = with{"quote", "", "We need bread, and somebody should call the plumber."}
	reply   = with{"reply", "", "The party is on Saturday; bring cups and juice."}
	mine    = with{"own", "", "I have to think of the bicycle, the tax and the plants."}
	none    = with{}
)

func all(acts ...act) []act { return acts }

// everydayTalks are conversations with five acts each.
var everydayTalks = map[string][]step{
	"a recipe becomes a list": {{"Put all of it on my list.", recipe, all(todo("Buy flour"), todo("Buy milk"), todo("Buy eggs"), todo("Buy butter"), todo("Buy sugar"))}},
	"a list, item by item": {{"Put flour on my list.", recipe, all(todo("Buy flour"))}, {"And milk.", none, all(todo("Buy milk"))},
		{"Eggs too.", none, all(todo("Buy eggs"))}, {"Butter.", none, all(todo("Buy butter"))}, {"And sugar, that is all.", none, all(todo("Buy sugar"))}},
	"minutes of a meeting": {{"Note who does what, and remind me of each.", minutes, all(note("Anna writes to the bank"), note("Ben books the hall"),
		note("Cleo asks for a price"), todo("Ask Anna about the bank"), todo("Ask Ben about the hall"))}},
	"minutes, then more": {{"What does it say?", minutes, nil}, {"Remind me of the bank and the hall.", none, all(todo("Ask about the bank"), todo("Ask about the hall"))},
		{"And of the price.", none, all(todo("Ask for the price"))}, {"Also of the invitations and the cake.", none, all(todo("Send invitations"), todo("Order a cake"))}},
	"a page about a trip": {{"Plan that trip for me.", page, all(aim("Travel to Brno"), todo("Buy train tickets"), alarm("Wake up early", "06:30"),
		note("The train to Brno leaves at 8:15"), todo("Pack a lunch"))}},
	"a page, over some turns": {{"When does it leave?", page, nil}, {"Note that, and the way back.", none, all(note("Train there at 8:15"), note("Train back at 19:40"))},
		{"Note that Eva comes along.", none, all(note("Eva comes to Brno"))}, {"And that she likes museums, and that we meet at the station.", none,
			all(note("Eva likes museums"), note("We meet at the station"))}},
	"a letter": {{"Take care of that for me.", letter, all(note("The contract ends on 31 May"), todo("Write to them by the end of April"), todo("Look for the contract"),
		todo("Compare prices"), look("Find out how to cancel the contract"))}},
	"a letter, two kinds of acts": {{"Put the three things to do on my list.", letter, all(todo("Find the contract"), todo("Write the letter"), todo("Post the letter"))},
		{"Note when it ends, and where it is kept.", none, all(note("It ends on 31 May"), note("The contract is in the blue folder"))}},
	"a photo of the fridge": {{"Note what we have, and put the rest on my list.", photo, all(note("There are four eggs"), note("There is some cheese"), todo("Buy milk"),
		todo("Buy butter"), todo("Buy apples"))}},
	"a photo, item by item": {{"What is missing?", photo, nil}, {"Milk and butter then.", none, all(todo("Buy milk"), todo("Buy butter"))}, {"Apples.", none, all(todo("Buy apples"))},
		{"Pears.", none, all(todo("Buy pears"))}, {"And plums.", none, all(todo("Buy plums"))}},
	"what a friend said": {{"Do what Fred says, and put my own things there too.", fred, all(todo("Buy bread"), todo("Call the plumber"), todo("Post the parcel"),
		todo("Pay the rent"), note("The plumber was called"))}},
	"what a friend said, step by step": {{"Bread goes on the list.", fred, all(todo("Buy bread"))}, {"The plumber too.", none, all(todo("Call the plumber"))},
		{"And the parcel.", none, all(todo("Post the parcel"))}, {"The rent and the gas as well.", none, all(todo("Pay the rent"), todo("Pay for gas"))}},
	"a reply about a party": {{"Yes! Set all of that up.", reply, all(todo("Bring cups"), todo("Bring juice"), alarm("Think of the party", "18:00"),
		note("The party is on Saturday"), howTo("parties", "Cups and juice are needed."))}},
	"a party, two kinds of acts": {{"Cups and juice go on the list.", reply, all(todo("Bring cups"), todo("Bring juice"))},
		{"Note the day, and that it is at Fred's, and that I bring the music.", none, all(note("It is on Saturday"), note("It is at Fred's"), note("The owner brings music"))}},
	"own words alone": {{"I have much to do: call mum, water the plants.", none, all(todo("Call mum"), todo("Water the plants"))}, {"And note that she likes tulips.", none, all(note("Mum likes tulips"))},
		{"I want to see her each month, make that a goal.", none, all(aim("See mum each month"))}, {"Wake me at seven.", none, all(alarm("Wake up", "07:00"))}},
	"an own earlier message": {{"All of that goes on my list.", mine, all(todo("Repair the bicycle"), todo("Do the tax"), todo("Water the plants"))},
		{"And note that the tax is late.", none, all(note("The tax is late"))}, {"Let somebody look for the receipts.", none, all(look("Find the receipts"))}},
	"first acts, then a file": {{"Put the dentist and the bank on my list.", none, all(todo("Call the dentist again"), todo("Go to the bank"))},
		{"Note that I am away in May, and that Eva has the key.", none, all(note("The owner is away in May"), note("Eva has the key"))}, {"My goal is to rest.", none, all(aim("Rest more"))},
		{"What does this say?", letter, nil}},
	"plans for a garden": {{"I want to grow beans. Make that a goal, and put seeds and soil on the list.", none, all(aim("Grow beans"), todo("Buy seeds"), todo("Buy soil"))},
		{"Remind me of watering.", none, all(alarm("Water the beans", "19:00"))}, {"Note that they like the sun.", none, all(note("Beans like the sun"))}},
	"two files": {{"Put that on the list.", recipe, all(todo("Buy flour and milk"), todo("Buy three eggs"), todo("Buy butter and sugar"))},
		{"And what this asks for.", letter, all(todo("Write about the contract"), todo("Find the contract"))}},
	"a page becomes a skill": {{"Keep how I travel to Brno as a skill, and the two times, and look for a hotel and for museums.", page, all(howTo("brno", "Take the train at 8:15."),
		note("To Brno at 8:15"), note("From Brno at 19:40"), look("Find a hotel in Brno"), look("Find museums in Brno"))}},
}

// come adds a message's attachments.
func (w *world) come(t *testing.T, in *chat.Message, what with) {
	t.Helper()
	switch what.kind {
	case "file":
		data := []byte(what.text)
		if strings.HasSuffix(what.name, ".pdf") {
			data = pdfWith(t, what.text)
		}
		in.Files = []chat.File{w.fileOf(t, chat.OtherFile, what.name, data)}
	case "picture":
		in.Files = []chat.File{w.fileOf(t, chat.ImageFile, what.name, picture(t, 7))}
	case "quote":
		in.Quotes = []chat.Quote{{ID: "$fred", Sender: friend, Text: what.text, Why: chat.QuoteContext}}
	case "reply":
		in.Quotes = []chat.Quote{{ID: "$eve", Sender: bystander, Text: what.text, Why: chat.QuoteReply}}
	case "own":
		in.Quotes = []chat.Quote{{ID: "$own", Sender: owner, Text: what.text, Why: chat.QuoteReply}}
	}
}

// TestEverydayTalks: people who work with files, pages and quotes are asked once for five acts, and approved acts run.
func TestEverydayTalks(t *testing.T) {
	acts, questions := 0, 0
	var b strings.Builder
	for name, talk := range everydayTalks {
		t.Run(name, func(t *testing.T) {
			w, o := newObedient(t, "flat_file")
			before := w.effects(t)
			var due []act
			asked := 0
			for i, s := range talk {
				in := chat.Message{Head: chat.Head{ID: fmt.Sprint("$", i), Room: "!group", Sender: owner, At: time.Now()}, Text: s.text}
				w.come(t, &in, s.with)
				var calls []string
				for _, a := range s.acts {
					calls = append(calls, a.call)
				}
				o.turn("", calls...)
				answer := w.deliver(t, in)
				expect.False(t, answer.Text == "" || answer.Notice, "%q is answered with %+v", s.text, answer)
				asked += w.votes(t, "!group", false, approval.Wide)
				due = append(due, s.acts...)
			}
			what := strings.Join(changed(before, w.effects(t)), "\n")
			for _, a := range due {
				expect.Has(t, what, a.want)
			}
			expect.Equal(t, len(due), 5)
			acts, questions = acts+len(due), questions+asked
			fmt.Fprintf(&b, "%-36s %4d %9d\n", name, len(due), asked)
		})
	}
	t.Logf("\n%-36s %4s %9s\n%s%-36s %4d %9d", "talk", "acts", "questions", b.String(), "all", acts, questions)
	expect.False(t, len(everydayTalks) != 20 || questions*5 > acts, "%d talks, %d questions for %d acts", len(everydayTalks), questions, acts)
}
