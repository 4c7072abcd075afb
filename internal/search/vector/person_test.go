package vector

import (
	"testing"

	"reverie/internal/search/searchtest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestInFirstPerson: the embedder gets what is known of a person as that person would say it; the text of the
// memory, and memories of rooms, are as they were.
func TestInFirstPerson(t *testing.T) {
	anna := trust.PersonReaders("@anna:x")
	for text, want := range map[string]string{
		"anna has never been on a plane.": "I has never been on a plane.", "Anna’s sister is called Annabel": "my sister is called Annabel", "Hanna knows Anna, and anna Hanna": "Hanna knows I, and I Hanna",
		"nothing of her": "nothing of her", "": "",
	} {
		expect.Equal(t, inFirstPerson(text, anna), want, text)
		expect.Equal(t, inFirstPerson(text, trust.RoomReaders("!anna:x")), text, "in a room")
	}
	expect.Equal(t, inFirstPerson("a.b has a dog, aXb has none", trust.PersonReaders("@a.b:x")), "I has a dog, aXb has none", "a name with a dot")

	db := searchtest.DB(t, t.TempDir())
	searchtest.Enter(t, db, searchtest.Doc{Text: "anna flies", Scope: anna}, searchtest.Doc{Text: "anna swims", Scope: trust.Everybody})
	e := &searchtest.Embedder{Model: "words", Dim: 64}
	complete(t, openVectors(t, db, e))
	texts, _ := e.Asked()
	expect.EqualSlice(t, texts, []string{"anna swims", "I flies"}, "embedded")
}
