//go:build race

package test

// raceFlag builds the bot as the tests are built.
var raceFlag = []string{"-race"}
