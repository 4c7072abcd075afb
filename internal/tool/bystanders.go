package tool

// held refuses to act on words of people who may not use the assistant: while a message
// quotes them, or where they said the same, what is done must be in the words of the person
// who asks, or have been agreed to. words is what the call is about.
func (scope Scope) held(words string) error {
	if !scope.Bystanders && !ownWords(words, scope.Overheard) {
		return nil
	}
	if ownWords(words, scope.Quote) || ownWords(words, scope.Said) || ownWords(words, scope.Agreed) {
		return nil
	}
	return refusal("Not done: others in this room are quoted here, and this is not in the words of the person who asks. " +
		"Only that person may have something done. Tell them what you would do and ask; when they have said yes, call it again.")
}
