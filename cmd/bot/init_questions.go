package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/matrix"
)

// newConfig is what `bot init` asks for, and what it has found out.
type newConfig struct {
	answers
	dialogue
	carrier  http.RoundTripper // of what is asked of homeservers; nil = http.DefaultTransport
	home     matrix.Homeserver // the last one that has answered
	password string            // tried, and not for the file
	models   []string          // on the model server; empty = not known
	wantsKey bool              // the model server has refused to answer without one
}

// ask asks on a terminal for what the defaults in a do not say. agree says what follows.
func ask(ctx context.Context, in io.Reader, out io.Writer, a answers, agree string, carrier http.RoundTripper) (*newConfig, error) {
	n := &newConfig{answers: a, carrier: carrier}
	n.dialogue = dialogue{in: in, lines: bufio.NewScanner(in), out: out, questions: append(n.matrixQuestions(), n.modelQuestions()...)}
	n.questions = append(n.questions, &question{label: "Time zone", group: "zone", answer: &n.Timezone, check: checkZone,
		text: "The time zone for reminders and dates, such as Europe/Berlin. Local = as this machine is set."})
	err := n.run(ctx, agree)
	n.Token = n.homeKnown() && !n.home.Passwords()
	return n, err
}

// homeKnown reports whether the homeserver has answered.
func (n *newConfig) homeKnown() bool { return n.Homeserver != "" && n.home.URL == n.Homeserver }

func (n *newConfig) matrixQuestions() []*question {
	none := func() bool { return n.Homeserver == "" }
	return []*question{
		{label: "Homeserver", group: "matrix", answer: &n.Homeserver, optional: true, check: n.checkHomeserver,
			text: "Your Matrix homeserver, such as example.org or https://matrix.example.org. Empty = no Matrix for now."},
		{label: "Bot's account", group: "matrix", answer: &n.User, skipped: none, check: n.checkUser,
			text: "The Matrix id of the bot's account, such as @reverie:example.org."},
		{label: "Password", group: "matrix", answer: &n.password, optional: true, hidden: true, check: n.checkPassword,
			skipped: func() bool { return !n.homeKnown() || !n.home.Passwords() },
			text:    "The password of that account. It is tried now, logs the bot in at the end, and stands in no file. Empty = later."},
		{label: "Owner", group: "matrix", answer: &n.Owner, skipped: none, check: n.checkOwner,
			text: "Your own Matrix id, such as @me:example.org. You may do everything."},
	}
}

func (n *newConfig) modelQuestions() []*question {
	return []*question{
		{label: "Model server", group: "model", answer: &n.ModelURL, check: n.checkModelServer,
			text: "The address of the language model server, such as http://127.0.0.1:11434/v1."},
		{label: "Key variable", group: "model", answer: &n.KeyVariable, optional: true, check: n.checkKey, skipped: n.needsNoKey,
			text: "The environment variable that holds the key of that server. Empty = it needs none."},
		{label: "Model", group: "model", answer: &n.Model, before: n.showModels, check: n.checkModel,
			text: "The model, by its name or its number in the list."},
	}
}

func (n *newConfig) checkHomeserver(ctx context.Context, given string) (string, error) {
	if given == "" {
		return "", nil
	}
	isName := !strings.ContainsAny(given, "/@") && webAddress("https://"+given)
	if !isName && !webAddress(given) {
		return "", errors.New("write a server name such as example.org, or a full address such as https://matrix.example.org")
	}
	fmt.Fprintf(n.out, "  Asking %s …\n", given)
	home, err := matrix.FindHomeserver(ctx, given, n.carrier)
	if home.URL != n.Homeserver {
		n.password = ""
	}
	switch {
	case errors.Is(err, matrix.ErrNotMatrix), errors.Is(err, matrix.ErrWellKnown):
		return home.URL, doubt{fmt.Errorf("%s %w; write the server name that ends your Matrix id, such as example.org", home.URL, err)}
	case err != nil:
		return home.URL, doubt{fmt.Errorf("%s does not answer: %s; start it, or correct the address, which may need http:// in front",
			home.URL, reason(err))}
	}
	if home.URL == n.home.URL { // its address now, and its name before
		home.Name = cmp.Or(home.Name, n.home.Name)
	}
	n.home = home
	fmt.Fprintf(n.out, "  %s answers (Matrix %s).\n", home.URL, home.Version)
	if !home.Passwords() {
		fmt.Fprintf(n.out, "  It offers no login with a password (only %q), so the bot will need an access token.\n", home.Flows)
	}
	return home.URL, nil
}

func isPerson(s string) bool { return strings.HasPrefix(s, "@") && matrix.CheckPattern(s) == nil }

func (n *newConfig) checkUser(ctx context.Context, given string) (string, error) {
	if !isPerson(given) {
		return "", errors.New("a full id is needed, such as @reverie:example.org")
	}
	if given != n.User {
		n.password = ""
	}
	if n.Owner == given {
		n.Owner = ""
	}
	if !n.homeKnown() {
		return given, nil
	}
	if err := n.home.CheckAccount(ctx, given); err != nil {
		return given, doubt{err}
	}
	return given, nil
}

func (n *newConfig) checkPassword(ctx context.Context, given string) (string, error) {
	if given == "" {
		return "", nil
	}
	if err := n.home.TryPassword(ctx, n.User, given); err != nil {
		return "", err
	}
	fmt.Fprintln(n.out, "  The password is right.")
	return given, nil
}

func (n *newConfig) checkOwner(_ context.Context, given string) (string, error) {
	if !isPerson(given) || given == n.User {
		return "", errors.New("your own full id is needed, such as @me:example.org, not the bot's")
	}
	return given, nil
}

func (n *newConfig) checkModelServer(ctx context.Context, given string) (string, error) {
	n.models, n.wantsKey = nil, false
	if given == rehearsalURL {
		n.models, n.KeyVariable = []string{rehearsalServer().Model}, ""
		return given, nil
	}
	if !webAddress(given) {
		return "", errors.New("a full address is needed, such as http://127.0.0.1:11434/v1")
	}
	given = strings.TrimRight(given, "/")
	fmt.Fprintf(n.out, "  Asking %s …\n", given)
	models, err := listModels(ctx, server{URL: given}, askTime)
	if u, _ := url.Parse(given); err != nil && u.Path == "" {
		longer, again := listModels(ctx, server{URL: given + "/v1"}, askTime)
		if again == nil || errors.Is(again, errWantsKey) {
			given, models, err = given+"/v1", longer, again
		}
	}
	if n.wantsKey = errors.Is(err, errWantsKey); n.wantsKey {
		fmt.Fprintf(n.out, "  %s wants a key.\n", given)
		return given, nil
	}
	if err != nil {
		return given, doubt{fmt.Errorf("%s does not say which models it has: %s; start it, or correct the address", given, reason(err))}
	}
	if n.models = models; len(models) == 0 {
		fmt.Fprintf(n.out, "  %s has no model yet. `ollama pull qwen3:8b` fetches one for Ollama.\n", given)
	}
	return given, nil
}

// needsNoKey reports whether the model server is on this machine and has answered without a key.
func (n *newConfig) needsNoKey() bool {
	u, err := url.Parse(n.ModelURL)
	return n.ModelURL == rehearsalURL || err == nil && thisMachine(u.Hostname()) && len(n.models) > 0 && n.KeyVariable == ""
}

func (n *newConfig) checkKey(ctx context.Context, given string) (string, error) {
	if given == "" && n.wantsKey {
		return "", errors.New("the server wants a key; write the name of the variable that will hold it, such as LLM_KEY")
	}
	if given == "" {
		return "", nil
	}
	if !variableName.MatchString(given) {
		return "", errors.New("write the variable's name, such as LLM_KEY, not the key")
	}
	key := os.Getenv(given)
	if key == "" {
		fmt.Fprintf(n.out, "  %s is not set here, so the key cannot be tried.\n", given)
		return given, nil
	}
	models, err := listModels(ctx, server{URL: n.ModelURL, Key: key}, askTime)
	if errors.Is(err, errWantsKey) {
		return given, doubt{fmt.Errorf("%s does not accept the key in %s", n.ModelURL, given)}
	}
	if err == nil {
		n.models = models
	}
	return given, nil
}

// mostModels is how many models a list shows.
const mostModels = 40

// showModels lists the models of the server, and has one of them as the default.
func (n *newConfig) showModels() {
	if len(n.models) == 0 {
		return
	}
	if !slices.Contains(n.models, n.Model) {
		n.Model = cmp.Or(server{}.with(n.models).Model, n.models[0])
	}
	for i, m := range n.models[:min(len(n.models), mostModels)] {
		fmt.Fprintf(n.out, "%5d  %s\n", i+1, m)
	}
	if more := len(n.models) - mostModels; more > 0 {
		fmt.Fprintf(n.out, "       … and %d more\n", more)
	}
}

func (n *newConfig) checkModel(_ context.Context, given string) (string, error) {
	number, err := strconv.Atoi(given)
	switch {
	case given == "":
		return "", errors.New("a name is needed, such as qwen3:8b")
	case len(n.models) == 0 || slices.Contains(n.models, given):
		return given, nil
	case err == nil && number >= 1 && number <= len(n.models):
		return n.models[number-1], nil
	case err == nil:
		return "", fmt.Errorf("the list has the numbers 1 to %d", len(n.models))
	}
	return given, doubt{fmt.Errorf("%s has no model %s", n.ModelURL, given)}
}

func checkZone(_ context.Context, given string) (string, error) {
	if _, err := time.LoadLocation(given); err != nil || given == "" {
		return "", errors.New("there is no such time zone; write one such as Europe/Berlin, or Local")
	}
	return given, nil
}

// systemZone returns the name of this machine's time zone, or Local if it has none that is
// known. tz is the variable TZ, and root where the system's files are.
func systemZone(tz, root string) string {
	file := func(path string) string { // of the zone database
		_, name, _ := strings.Cut(path, "zoneinfo/")
		return name
	}
	candidates := []string{strings.TrimPrefix(tz, ":"), file(tz)}
	if tz == "" {
		link, _ := os.Readlink(filepath.Join(root, "etc/localtime"))
		text, _ := readSmall(filepath.Join(root, "etc/timezone"), 100)
		candidates = []string{file(link), strings.TrimSpace(string(text))}
	}
	for _, name := range candidates {
		if _, err := time.LoadLocation(name); err == nil && name != "" && !filepath.IsAbs(name) {
			return name
		}
	}
	return "Local"
}

// askTime bounds each request of a list of models.
const askTime = 5 * time.Second

// reason is the innermost cause of an error, without the addresses around it.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer within 5 seconds"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

func webAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
