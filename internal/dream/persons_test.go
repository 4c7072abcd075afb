package dream

import "testing"

// TestOtherPersons: what is said of me and of her, or of a him of whom nobody knows who
// he is, does not contradict each other by its structure.
func TestOtherPersons(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"He lives in Bath.", "She lives in Derby now.", false},
		{"He lives in Bath.", "I live in Derby now.", false},
		{"He lives in Bath.", "He lives in Derby now.", false},
		{"His phone number is 123456", "Her phone number is 654321", false},
		{"Your phone number is 123456", "My phone number is 654321", false},
		{"Er wohnt in Ulm.", "Sie wohnt jetzt in Köln.", false},
		{"Seine Telefonnummer ist 123456", "Ihre Telefonnummer ist 654321", false},
		{"Lui vive a Roma", "Lei vive a Milano adesso", false},
		{"Il vit à Lyon", "Elle vit à Paris maintenant", false},
		{"I like tea.", "He doesn't like tea.", false},
		{"He likes tea.", "He doesn't like tea.", false},
		{"Mia wohnt in Ulm.", "Ich wohne jetzt in Köln.", false},
		{"mia lives in Bath.", "I live in Derby now.", false},
		{"Sue lives in Bath.", "I live in Derby now.", false},
		{"Sue lives in Bath.", "Al lives in Derby now.", false},
		{"Per wohnt in Ulm.", "Ich wohne jetzt in Köln.", false},
		{"Al works as a pilot.", "I work as a nurse now.", false},
		{"Die Telefonnummer von So ist 123456", "Meine Telefonnummer ist 654321", false},
		{"Sue likes tea.", "I don't like tea.", false},
		{"Sue lives in Bath.", "Sue lives in Derby now.", true},
		{"Lives in Bath.", "Has moved to Derby.", true},
		{"The garage code is 4711", "Our garage code is now 4712", true},
		{"Il codice del garage è 4711", "Il codice del garage è 4712", true},
		{"Mia lives in Bath.", "Mia's moved to Derby.", true},
		{"I live in Bath.", "We have moved to Derby.", true},
		{"Meine Handynummer ist 123456", "Meine Handynummer ist jetzt 654321", true},
		{"Anna lives with her dog in Bath.", "Anna lives with her dog in Derby now.", true},
		{"I like tea.", "I don't like tea.", true},
	} {
		if got, k := contradict(c.a, c.b); got != c.want {
			t.Errorf("%q and %q contradict each other: %v (%+v)", c.a, c.b, got, k)
		}
	}
	for _, c := range []struct {
		text string
		self bool
	}{
		{"Mia lives in Bath.", false}, {"Die Nummer von Mia ist 4711.", false}, {"mia's moved to derby", false},
		{"La mia auto è una Fiat.", true}, {"Mia sorella vive a Roma.", true},
	} {
		if s := signed(c.text)[0]; s.self != c.self {
			t.Errorf("%q is about the person themselves: %v", c.text, s.self)
		}
	}
}
