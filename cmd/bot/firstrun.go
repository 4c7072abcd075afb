package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reverie/cmd/bot/config"
	"reverie/internal/lazyregexp"
	"reverie/internal/matrix/setup"
	"reverie/internal/store"
)

// firstRunCommand sets up the bot of docker-compose.yml with its own homeserver.
type firstRunCommand struct {
	Homeserver string   `default:"http://homeserver:8008" help:"Where the bot reaches the homeserver."`
	Address    string   `default:"http://localhost:8008" help:"Where people reach it."`
	ServerName string   `arg:"--server-name" default:"localhost" help:"The part after the colon in user ids."`
	SecretFile filePath `arg:"--secret-file,required" help:"A file with the homeserver's registration_shared_secret."`
	ModelURL   string   `arg:"--model-url" default:"http://ollama:11434/v1" help:"Where the bot reaches the language model."`
	Model      string   `default:"qwen3:8b" help:"What the server calls the model."`

	KeyVariable string `arg:"--key-variable" help:"The environment variable with the key of the model's server; empty = no key."`
}

const (
	loginFile    = "LOGIN.txt"
	passwordFile = "matrix-password" // as in config.yaml.tmpl
	configFolder = "docker/bot"      // the configuration's folder outside of the container
)

// Run creates two accounts, their room and config.yaml. The configuration is written last, so an
// interrupted run can be repeated with the passwords in the files.
func (f firstRunCommand) Run(ctx context.Context, c console, path filePath) error {
	dir := filepath.Dir(string(path))
	login := filepath.Join(dir, loginFile)
	if _, err := os.Lstat(string(path)); err == nil {
		_, err = fmt.Fprintf(c.out, "%s/%s already exists: nothing to set up. The login of the first run is in %s/%s.\n",
			configFolder, filepath.Base(string(path)), configFolder, loginFile)
		return err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("first run: %w; %s", err, ownershipRemedy)
	}
	if err := f.setUp(ctx, string(path), login); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("first run: %w; %s", err, ownershipRemedy)
	} else if err != nil {
		return fmt.Errorf("first run: %w", err)
	}
	text, err := os.ReadFile(login)
	if err != nil {
		return fmt.Errorf("first run: %w", err)
	}
	_, err = fmt.Fprintf(c.out, "\n%s\nThis login is kept in %s/%s. The files that you can edit are in %s/data.\n", text, configFolder,
		loginFile, configFolder)
	return err
}

// ownershipRemedy says what to do if the folder is not accessible.
const ownershipRemedy = "run the containers as the user whose folder this is: UID=… and GID=… (`id -u`, `id -g`) in the file .env"

// setUp creates the accounts, their room, and the configuration.
func (f firstRunCommand) setUp(ctx context.Context, path, login string) error {
	secret, err := os.ReadFile(string(f.SecretFile))
	if err != nil {
		return fmt.Errorf("the homeserver's registration secret: %w; start the homeserver first", err)
	}
	bot := setup.Account{Homeserver: f.Homeserver, User: "@reverie:" + f.ServerName}
	you := setup.Account{Homeserver: f.Homeserver, User: "@me:" + f.ServerName}
	password := filepath.Join(filepath.Dir(path), passwordFile)
	if bot.Password, err = readOrCreatePassword(password, func(p string) string { return p + "\n" }); err != nil {
		return err
	}
	if you.Password, err = readOrCreatePassword(login, func(p string) string { return f.loginText(you.User, p) }); err != nil {
		return err
	}
	accounts := setup.Registrar{URL: f.Homeserver, Name: f.ServerName, Secret: strings.TrimSpace(string(secret))}
	for name, user := range map[string]setup.Account{"reverie": bot, "me": you} {
		if _, err := accounts.Register(ctx, name, user.Password); err != nil {
			return err
		}
	}
	if err := setup.CheckPassword(ctx, bot); err != nil {
		return explainWrongPassword(err, password)
	}
	if _, err = setup.EnsureDirectRoom(ctx, you, "Reverie", bot.User); err != nil {
		return explainWrongPassword(err, login)
	}
	a := config.DefaultAnswers()
	a.Homeserver, a.User, a.Owner, a.ModelURL, a.Model = f.Homeserver, bot.User, you.User, f.ModelURL, f.Model
	a.PasswordFile, a.KeyVariable = true, f.KeyVariable
	return store.WriteFile(path, config.Render(a))
}

// explainWrongPassword adds what to do if an older account has another password.
func explainWrongPassword(err error, file string) error {
	if !setup.IsWrongPassword(err) {
		return err
	}
	return fmt.Errorf("%w; the account already exists, and %s does not contain its password: restore that file, "+
		"or empty the homeserver's folder to start again", err, file)
}

// passwordLine matches a line with a password, alone or after the word.
var passwordLine = lazyregexp.New(`(?m)^(?:\s*password\s+)?(\S+)\s*$`)

// readOrCreatePassword returns the password in a file. A missing file is created with a random one.
func readOrCreatePassword(path string, text func(password string) string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b = []byte(text(rand.Text()))
		err = store.WriteFile(path, b)
	}
	if err != nil {
		return "", err
	}
	found := passwordLine().FindSubmatch(b)
	if found == nil {
		return "", fmt.Errorf("%s contains no password; move it away, and the homeserver's folder too if it has accounts", path)
	}
	return string(found[1]), nil
}

func (f firstRunCommand) loginText(user, password string) string {
	return fmt.Sprintf(`Reverie waits for you. Log in on this machine, with a Matrix client:

  homeserver  %s
  user        %s
  password    %s

Element Desktop will do, or Element Web at https://app.element.io: choose Sign in, change the
homeserver to the address above, and write in the room "Reverie".
Element X cannot log in: it needs simplified sliding sync, which this homeserver, Dendrite, does not have.
Clients on other machines and phones need a proxy in front of the homeserver that speaks HTTPS.
`, f.Address, user, password)
}
