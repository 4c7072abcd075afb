package tool

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// AskPerson is the name of the tool that asks the person a question with a few answers.
const AskPerson = "ask_person"

// Limits of a question. One of this size fits a poll of every client.
const (
	minAnswers       = 2
	maxAnswers       = 5
	maxQuestionRunes = 600
	maxAnswerRunes   = 100
)

// Question is a question with the answers that a person can choose from.
type Question struct {
	Text    string   `json:"question" rule:"required" doc:"All they need to know."`
	Answers []string `json:"answers" rule:"required" doc:"2 to 5."`
}

// ParseQuestion reads the arguments of an AskPerson call. Each text becomes one line.
func ParseQuestion(arguments string) (q Question, ok bool) {
	err := json.Unmarshal([]byte(arguments), &q)
	return q.tidied(), err == nil && len(q.tidied().faults()) == 0
}

// tidied returns q with each text in one line, so that no answer can look like several.
func (q Question) tidied() Question {
	line := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	q.Text, q.Answers = line(q.Text), slices.Clone(q.Answers)
	for i, answer := range q.Answers {
		q.Answers[i] = line(answer)
	}
	return q
}

// faults lists what is wrong with a tidied question.
func (q Question) faults() (found faults) {
	if n := len([]rune(q.Text)); n > maxQuestionRunes {
		found.add("question: has %d characters; use at most %d, and say the rest in your answer before you ask", n, maxQuestionRunes)
	}
	if n := len(q.Answers); n < minAnswers || n > maxAnswers {
		found.add("answers: there are %d; send %d to %d, or ask in the words of your answer", n, minAnswers, maxAnswers)
	}
	for i, answer := range q.Answers {
		switch {
		case answer == "" || slices.Contains(q.Answers[:i], answer):
			found.add("answers: number %d is empty or a repetition", i+1)
		case len([]rune(answer)) > maxAnswerRunes:
			found.add("answers: number %d is too long; use at most %d characters", i+1, maxAnswerRunes)
		}
	}
	return found
}

// askPerson only records its call in the transcript. The session finds it there, and ends the turn with
// the question as the answer.
func (*Set) askPerson(_ context.Context, scope Scope, q Question) (string, error) {
	if scope.System || scope.SubSession != "" {
		return "", refusal("Nobody can be asked here: decide yourself, or say in your answer what is left to decide.")
	}
	if found := q.tidied().faults(); len(found) > 0 {
		return "", found
	}
	return "The person is asked now. What they choose or write comes as their next message.", nil
}
