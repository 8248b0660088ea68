package redact

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// This file finds secrets: by the shapes that issuers publish for their tokens,
// by the words beside them, and as private keys.

// secretOf returns what stands for a secret in s.
func secretOf(what, secret, s string, _, to int) string {
	const least = 20 // Characters of a token whose prefix is a common one.
	switch {
	case what == "long" && len(secret) < least, what == "value" && plainSetting(secret):
		return secret
	case what != "pem":
		return redacted
	}
	end := ""
	if to == len(s) && strings.HasSuffix(secret, "\n") {
		end = "\n"
	}
	// There are as many lines as before: places are given by their numbers.
	lines := strings.Repeat("\n"+redacted, strings.Count(strings.TrimSuffix(secret, end), "\n"))
	return "-----BEGIN PRIVATE KEY----- " + redacted + " -----END PRIVATE KEY-----" + lines + end
}

// strength says how surely a name is that of a secret.
type strength int

const (
	noSecret strength = iota
	// mayBeSecret is a name such as "auth" or "key": the value, or how the two stand together, must confirm it.
	mayBeSecret
	// isSecret is a name such as "password".
	isSecret
)

// hump is where an upper-case letter follows a lower-case one.
var hump = lazy.New(`([a-z])([A-Z])`)

// wordsOf splits a name at everything that is no letter or digit, and at humps.
func wordsOf(name string) []string {
	return strings.FieldsFunc(lower(hump.ReplaceAllString(name, "$1 $2")), notAlnum)
}

func secrecy(name string) strength {
	if name == "PWD" || name == "OLDPWD" { // The shell's folders.
		return noSecret
	}
	words := append(wordsOf(name), "")
	found := noSecret
	for i, w := range words[:len(words)-1] {
		switch {
		case slices.Contains(known().NoSecretAfter, words[i+1]):
		case known().SecretWords.MatchString(w), (w == "key" || w == "keys") && i > 0 && slices.Contains(known().KeyKinds, words[i-1]):
			return isSecret
		case known().Doubtful.MatchString(w):
			found = mayBeSecret
		}
	}
	return found
}

// plainSetting reports whether a value is a number of a few digits or a switch,
// a reference to another variable or a place holder.
func plainSetting(value string) bool {
	const enough = 64 // What is longer is told by its beginning.
	value = strings.TrimSpace(value)
	return known().Harmless.MatchString(lower(value[:min(len(value), enough)]))
}

var (
	// numeric is a number or a size, of whatever length.
	numeric = lazy.New(`^[-+0-9.,_e]+(?i:b|[kmgt]|[kmg]i?b|[mu]?s|%|x)?$`)
	isPath  = lazy.New(`^(?:~|\.{0,2})/`)
)

// random reports whether a value looks as if it was made by chance: long enough,
// of several kinds of characters, few of which come often.
func random(value string) bool {
	const least, long = 8, 16
	if len(value) < least || numeric.MatchString(value) || isPath.MatchString(value) || strings.ContainsAny(value, " \t(){}<>|*") {
		return false
	}
	const digits = "0123456789"
	kinds := 0
	for _, kind := range []string{"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", digits} {
		if strings.ContainsAny(value, kind) {
			kinds++
		}
	}
	// Words have one kind, numbered names two with a separator: "node-17". At 16
	// characters, hexadecimal of 4 bits each has 64 bits.
	switch {
	case strings.Trim(lower(value), digits+"abcdef") == "" && strings.ContainsAny(value, digits) && len(value) >= long:
		return true
	case kinds == 3:
		return distinct(value) >= least-1
	}
	return kinds == 2 && len(value) >= long && distinct(value) >= 10 && !strings.ContainsAny(value, "/.")
}

// distinct counts the different bytes of a text.
func distinct(s string) int {
	bytes := []byte(s)
	slices.Sort(bytes)
	return len(slices.Compact(bytes))
}

// setting is how a name and a value stand together.
type setting struct {
	name string
	// sign is '=', ':' or ' ' between the two.
	sign byte
	// flag is true behind dashes, quoted where the name or the value stands in quotes. first is true if the name is
	// the first on its line, whole where the value is also all the rest of it.
	flag, quoted, first, whole bool
}

func (s setting) secret(value string) bool {
	sure := secrecy(s.name)
	if sure == noSecret || plainSetting(value) {
		return false
	}
	name := lower(s.name)
	upper := s.name == strings.ToUpper(s.name) && s.name != name
	stated := s.flag || s.quoted || upper && s.sign == '=' // No prose.
	password := strings.Contains(name, "pass") || strings.Contains(name, "pwd") || strings.Contains(name, "secret")
	switch {
	case numeric.MatchString(value) && (!password || sure != isSecret && !upper && !s.flag || len(value) <= 5):
		return false
	case s.sign != '=' && slices.Contains(known().Verdicts, strings.Trim(lower(value), ".,;:!")):
		return false
	case s.sign == ' ' && !s.flag:
		return random(value)
	case sure == isSecret && password:
		return !isPath.MatchString(value) || name != "pwd"
	case isPath.MatchString(value):
		return false
	case sure == isSecret && (stated || s.sign == '=' || s.whole):
		return true
	case sure == mayBeSecret && (stated || upper && s.whole):
		words := wordsOf(s.name)
		return !slices.Contains([]string{"key", "keys", "tokens"}, words[len(words)-1]) || random(value) || upper && len(value) > 5
	}
	return random(value)
}

// Withheld is the value of a variable whose real value is private.
const Withheld = "set"

// SecretVariable reports whether a variable's name says that its value is a secret (NVIDIA_API_KEY). A small number
// is not: NCCL_IB_PKEY is an index.
func SecretVariable(name, value string) bool {
	return setting{name: name, sign: '=', quoted: true}.secret(value)
}

func secrets(s string) string {
	s = apply(known().Secrets, s, secretOf)
	if !hasHint(s) {
		return s
	}
	var out strings.Builder
	done := 0
	for _, m := range settingName.Get().FindAllStringIndex(s, -1) {
		if m[0] < done || !hasHint(s[m[0]:m[1]]) {
			continue
		}
		if from, to := secretBeside(s, m[0], m[1]); to > from {
			out.WriteString(s[done:from] + redacted)
			done = to
		}
	}
	return out.String() + s[done:]
}

// hasHint reports whether a text may hold the name of a secret.
func hasHint(s string) bool {
	s = lower(s)
	return slices.ContainsFunc(known().SecretHints, func(hint string) bool { return strings.Contains(s, hint) })
}

// variables replaces the values of variables that are written as a name and a value.
func variables(s string) string {
	name := ""
	return apply(known().Variables, s, func(what, text, _ string, _, _ int) string {
		switch {
		case what == "name":
			name = text
		case SecretVariable(name, text):
			return redacted
		}
		return text
	})
}

var (
	settingName = lazy.New(`[A-Za-z_]\w*(?:[-.]\w+)*`)
	// settingSign is what stands between a name and its value.
	settingSign = lazy.New(`^(["'\\\]]*)([ \t]*)(:=|=|:)?[ \t]*`)
	// scheme begins the credentials of an Authorization header (RFC 9110, 11.6.2).
	scheme = lazy.New(`^["']?(?i:bearer|basic|digest|token|apikey|negotiate)["']?[ \t]`)
	// setsVariable ends in a command that takes a name and a value: setenv of csh, ENV of a Dockerfile.
	setsVariable = lazy.New(`(?:setenv|(?:^|\W)ENV)[ \t]*$`)
)

// secretBeside returns the range of the secret that the name from at to end
// announces; to equals from if there is no secret.
func secretBeside(s string, at, end int) (from, to int) {
	name := lower(s[at:end])
	m := settingSign.FindStringSubmatch(s[end:])
	what := setting{name: s[at:end], sign: ' ', flag: before(s, at) == '-', first: strings.Trim(s[:at], " \t-\"'{") == "", quoted: strings.ContainsAny(m[1], `"'`)}
	i := end + len(m[0])
	switch {
	case m[3] == "" && m[2] == "", m[3] != "" && after(s, i) == m[3][0] && s[i-1] == m[3][0]: // "==", "::".
		return 0, 0
	case m[3] != "":
		what.sign = m[3][0]
	case what.flag:
	case name == "bearer":
		if from, to = valueAt(s, i, &what); to-from >= 16 {
			return from, to
		}
		return 0, 0
	case setsVariable.MatchString(s[max(0, at-16):at]):
		what.sign = '='
	case strings.Contains(s, "machine") && strings.Contains(s, "login"): // A line of .netrc.
		what.sign, what.quoted = '=', true
	}
	if strings.HasSuffix(name, "authorization") {
		if skip := len(scheme.FindString(s[i:])); skip > 0 {
			i += skip
			what = setting{name: "password", sign: '='}
		}
	}
	from, to = valueAt(s, i, &what)
	if from == to || !what.secret(s[from:to]) {
		return 0, 0
	}
	return from, to
}

var (
	// quotedValue is a value in quotes, which may be escaped.
	quotedValue = lazy.New(`^(?:\\+"([^\n]*?)(?:\\"|\n|$)|"((?:[^"\\\n]|\\.)*)|\\*'((?:[^'\\\n]|\\.)*))`)
	nextSetting = lazy.New(`^[&;,][\w.-]+=`)
)

// valueAt returns where the value lies that begins at a place.
func valueAt(s string, at int, what *setting) (from, to int) {
	if m := quotedValue.Get().FindStringSubmatchIndex(s[at:]); m != nil {
		from, to = at+max(m[2], m[4], m[6]), at+max(m[3], m[5], m[7])
		what.quoted = what.quoted || what.sign == '=' || what.flag
		what.whole = what.first && strings.Trim(s[to:], "\"', \t\r\n") == ""
		return from, to
	}
	from = len(s) - len(strings.TrimLeft(s[at:], `\`))
	end := len(s)
	if blank := strings.IndexAny(s[from:], " \t\r\n\x00"); blank >= 0 {
		end = from + blank
	}
	const maxName = 64 // Of the next setting, before which the value ends.
	for to = from; to < end; to++ {
		if strings.IndexByte("&;,", s[to]) >= 0 && nextSetting.MatchString(s[to:min(end, to+maxName)]) {
			break
		}
	}
	what.whole = what.first && (strings.TrimSpace(s[to:]) == "" || after(s, to) == 0) // NUL, in /proc/PID/environ.
	return from, from + len(strings.TrimRight(s[from:to], `"',;)]}\`))
}
