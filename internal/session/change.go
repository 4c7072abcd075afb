package session

import "time"

// Change says what an Inbound does to something that was said before.
type Change string

// The changes. None of them is a message: nothing is ever answered but what they are
// done to, which is their Target.
const (
	// Edited: the sender of Target, a message, gave it the words in Text. At is when
	// Target was sent.
	Edited Change = "edited"
	// TakenBack: Target is not to be seen any more. It is a message, or one of our own.
	TakenBack Change = "taken back"
	// StopThis: the answer Target, or the one to the message Target, is not wanted.
	StopThis Change = "stop"
	// Voted: somebody answered the question Target, one of our own, with the Option whose ID is
	// in Text. Sender is who. A vote that is not encrypted in an encrypted room never comes here.
	Voted Change = "voted"
	// approvedChange: the acts that Target asked about are approved and may run. It comes from
	// the session itself.
	approvedChange Change = "approved"
	// AskAgain: the answer Target, or the one to the message Target, is wanted anew.
	AskAgain Change = "retry"
)

// Young is how old a message may be, at most, that becomes a command or a question by an edit.
const Young = 10 * time.Minute
