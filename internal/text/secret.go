package text

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"reverie/internal/lazyregexp"
)

// Patterns of secrets: keys of well-known forms, and words that accompany them. Secrets are only stored
// when a person asks for it with !remember.
var (
	keyRE = lazyregexp.New(`\b(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abeprs]|hf|npm|syt` +
		`|AKIA|ASIA|AIza|SG|key|tok)[-_.]?[A-Za-z0-9][-_A-Za-z0-9.]{11,}` +
		`|\beyJ[-_A-Za-z0-9]{10,}\.|-----BEGIN [A-Z ]+-----|://[^/\s:@]+:[^/\s@]+@`)
	secretWordRE = lazyregexp.New(`(?i)pass\s?-?(?:word|wort|phrase|code)|\bpasswd\b|\bpwd\b|\bkennw[oö]rt|geheimzahl|zugangsdaten` +
		`|mot de passe|contraseña|parola d'ordine|пароль|密码|密碼|パスワード|비밀번호` +
		`|\b(?:pin|puk|tan|cvv|cvc|otp)\b|\b(?:secret|private|api|access|recovery|encryption|ssh|signing|master)[ -]?(?:key|token|phrase)` +
		`|\b(?:seed|recovery) (?:phrase|words)|\bcredentials?\b|\b(?:bearer|auth|login) ?token` +
		`|\b(?:geheimer|privater) schlüssel|wiederherstellungsschlüssel|api-?schlüssel`)
	groupsRE    = lazyregexp.New(`(?:\b[A-Za-z0-9]{4}\s){7,}[A-Za-z0-9]{4}\b`) // the form of recovery keys
	longTokenRE = lazyregexp.New(`[A-Za-z0-9+/_=-]{20,}`)
	digitsRE    = lazyregexp.New(`\b\d(?:[ -]?\d){12,18}\b`)
)

// HasSecret reports whether text contains or mentions a password, a key or a card number.
func HasSecret(text string) bool {
	return keyRE().MatchString(text) || secretWordRE().MatchString(norm.NFKC.String(text)) ||
		slices.ContainsFunc(longTokenRE().FindAllString(text, -1), mixedToken) ||
		slices.ContainsFunc(groupsRE().FindAllString(text, -1), mixedToken) ||
		slices.ContainsFunc(digitsRE().FindAllString(text, -1), isCard)
}

// mixedToken reports whether letters and digits alternate in token as in random keys.
func mixedToken(token string) bool {
	lower, upper, digits, turns := 0, 0, 0, 0
	last := 0
	for _, r := range token {
		kind := 0
		switch {
		case unicode.IsDigit(r):
			kind, digits = 1, digits+1
		case unicode.IsLower(r):
			kind, lower = 2, lower+1
		case unicode.IsUpper(r):
			kind, upper = 3, upper+1
		}
		if kind != last {
			turns++
		}
		last = kind
	}
	return digits >= 2 && lower+upper >= 4 && turns >= len(token)/4 && !strings.Contains(token, "/")
}

// isCard reports whether number has the length and check digit of a payment card.
func isCard(number string) bool {
	sum, n := 0, 0
	for i := len(number) - 1; i >= 0; i-- {
		if number[i] < '0' || number[i] > '9' {
			continue
		}
		d := int(number[i] - '0')
		if n%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum, n = sum+d, n+1
	}
	return n >= 13 && sum%10 == 0
}
