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

// hasHint reports whether a text in lower case holds one.
func hasHint(low string) bool {
	return slices.ContainsFunc(known().SecretHints, func(hint string) bool { return strings.Contains(low, hint) })
}

// strength says how surely a name is that of a secret.
type strength int

const (
	noSecret strength = iota
	// mayBeSecret is a name such as "auth" or "key": the value, or how the two
	// stand together, must confirm it.
	mayBeSecret
	// isSecret is a name such as "password".
	isSecret
)

// wordsOf splits a name at everything that is no letter or digit, and where an
// upper-case letter follows a lower-case one.
func wordsOf(name string) []string {
	var words []string
	start := 0
	flush := func(end int) {
		if end > start {
			words = append(words, lower(name[start:end]))
		}
	}
	for i := range len(name) {
		switch {
		case !isAlnum(name[i]):
			flush(i)
			start = i + 1
		case i > start && 'A' <= name[i] && name[i] <= 'Z' && 'a' <= name[i-1] && name[i-1] <= 'z':
			flush(i)
			start = i
		}
	}
	flush(len(name))
	return words
}

// secrecy tells whether a name is that of a secret.
func secrecy(name string) strength {
	if !hasHint(lower(name)) || name == "PWD" || name == "OLDPWD" { // The shell's folders.
		return noSecret
	}
	words := wordsOf(name)
	found := noSecret
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		if slices.Contains(known().NoSecretAfter, next) {
			continue
		}
		switch {
		case slices.ContainsFunc(known().SecretParts, func(p string) bool { return strings.Contains(w, p) }),
			slices.Contains(known().SecretWords, w), strings.HasSuffix(w, "token"),
			(w == "key" || w == "keys") && i > 0 && slices.Contains(known().KeyKinds, words[i-1]):
			return isSecret
		case slices.Contains(known().Doubtful, w), strings.HasSuffix(w, "key"):
			found = mayBeSecret
		}
	}
	return found
}

// plainSetting reports whether a value is a number of a few digits or a switch,
// a reference to another variable or a place holder.
func plainSetting(value string) bool {
	low := lower(strings.TrimSpace(value))
	if slices.Contains(known().Harmless, low) || strings.HasPrefix(low, "$") || strings.HasPrefix(low, "<") || strings.HasPrefix(low, "%") && (strings.HasSuffix(low, "%") || len(low) == 2) ||
		strings.HasPrefix(low, "{{") || len(low) > 2 && strings.Trim(low, "*x.") == "" {
		return true
	}
	digits := strings.TrimPrefix(low, "0x")
	return len(digits) <= 5 && strings.Trim(digits, "0123456789abcdef") == "" && (digits != low || strings.ContainsAny(digits, "0123456789")) // 5: 65535.
}

// isNumber reports whether a value is a number or a size, of whatever length.
func isNumber(value string) bool {
	rest := strings.TrimLeft(value, "+-0123456789.,_e")
	return rest != value && slices.Contains([]string{"", "b", "k", "m", "g", "t", "kb", "mb", "gb", "kib", "mib", "gib", "s", "ms", "us", "%", "x"}, lower(rest))
}

func isPath(value string) bool {
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../") || strings.HasPrefix(value, "~/")
}

// random reports whether a value looks as if it was made by chance: long enough,
// of several kinds of characters, few of which come often.
func random(value string) bool {
	const least, long = 8, 16
	if len(value) < least || isNumber(value) || isPath(value) || strings.ContainsAny(value, " \t(){}<>|*") {
		return false
	}
	digit := strings.ContainsAny(value, "0123456789")
	kinds := 0
	for _, kind := range []string{"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"} {
		if strings.ContainsAny(value, kind) {
			kinds++
		}
	}
	// Words have one kind, numbered names two with a separator: "node-17". At 16
	// characters, hexadecimal of 4 bits each has 64 bits.
	switch {
	case strings.Trim(lower(value), "0123456789abcdef") == "" && digit && len(value) >= long:
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
	// flag is true behind dashes, quoted where the name or the value stands in
	// quotes. first is true if the name is the first on its line, whole where
	// the value is also all the rest of it.
	flag, quoted, first, whole bool
}

// secret reports whether a value is one.
func (s setting) secret(value string) bool {
	sure := secrecy(s.name)
	if sure == noSecret || plainSetting(value) {
		return false
	}
	upper := s.name == strings.ToUpper(s.name) && strings.ToLower(s.name) != s.name
	stated := s.flag || s.quoted || upper && s.sign == '=' // No prose.
	low := lower(value)
	password := slices.ContainsFunc([]string{"pass", "pwd", "secret"}, func(p string) bool { return strings.Contains(lower(s.name), p) })
	switch {
	case isNumber(value) && (!password || sure != isSecret && !upper && !s.flag || len(value) <= 5):
		return false
	case s.sign != '=' && slices.Contains(known().Verdicts, strings.Trim(low, ".,;:!")):
		return false
	case s.sign == ' ' && !s.flag:
		return random(value)
	case sure == isSecret && password:
		return !isPath(value) || lower(s.name) != "pwd"
	case isPath(value):
		return false
	case sure == isSecret && (stated || s.sign == '=' || s.whole):
		return true
	case sure == mayBeSecret && (stated || upper && s.whole):
		words := wordsOf(s.name)
		return words[len(words)-1] != "key" && words[len(words)-1] != "keys" && words[len(words)-1] != "tokens" || random(value) || upper && len(value) > 5
	}
	return random(value)
}

// Withheld is the value of a variable whose real value is private.
const Withheld = "set"

// SecretVariable reports whether a variable's name says that its value is a
// secret (NVIDIA_API_KEY). A small number is no secret: NCCL_IB_PKEY is the index
// of a partition key, UCX_RKEY_MPOOL a size.
func SecretVariable(name, value string) bool {
	return setting{name: name, sign: '=', quoted: true}.secret(value)
}

// secrets replaces the secrets of one line.
func secrets(s string) string {
	s = apply(known().Secrets, s, secretOf)
	low := lower(s)
	if !hasHint(low) {
		return s
	}
	if strings.Contains(low, "name") && strings.Contains(low, "value") {
		s = namedValues(s)
	}
	return secretSettings(s)
}

// nameAndValue is a variable on one line, as JSON and YAML write it:
// {"name": "DB_PASSWORD", "value": "x"}.
var nameAndValue = lazy.New(`\bname["'\\]*\s*:\s*["'\\]*([A-Za-z_][\w.-]*)["'\\]*\s*[,;\s]\s*["'\\]*value["'\\]*\s*:\s*(\\?"(?:[^"\\]|\\[^"])*|'[^']*|[^\s"',;}]+)`)

// namedValues replaces the values of such variables.
func namedValues(s string) string {
	var out strings.Builder
	last := 0
	for _, m := range nameAndValue.FindAllStringSubmatchIndex(s, -1) {
		value := strings.TrimLeft(s[m[4]:m[5]], "\\\"'")
		if from := m[5] - len(value); SecretVariable(s[m[2]:m[3]], value) {
			out.WriteString(s[last:from] + redacted)
			last = m[5]
		}
	}
	return out.String() + s[last:]
}

// secretSettings replaces the values that stand beside names of secrets.
func secretSettings(s string) string {
	var out strings.Builder
	done := 0
	for at := 0; at < len(s); {
		if !isWord(s[at]) || isDigit(s[at]) {
			at++
			continue
		}
		end := at
		for end < len(s) && (isWord(s[end]) || (s[end] == '-' || s[end] == '.') && end+1 < len(s) && isWord(s[end+1])) {
			end++
		}
		from, to := secretBeside(s, at, end)
		if to > from && from >= done {
			out.WriteString(s[done:from] + redacted)
			done = to
			at = to
			continue
		}
		at = end
	}
	if done == 0 {
		return s
	}
	return out.String() + s[done:]
}

// secretBeside returns the range of the secret that the name from at to end
// announces; to equals from if there is no secret.
func secretBeside(s string, at, end int) (from, to int) {
	name := s[at:end]
	if secrecy(name) == noSecret {
		return 0, 0
	}
	what := setting{name: name, flag: before(s, at) == '-', first: strings.Trim(s[:at], " \t-\"'{") == ""}
	i := end
	for i < len(s) && strings.IndexByte(`"'\]`, s[i]) >= 0 {
		what.quoted = what.quoted || s[i] == '"' || s[i] == '\''
		i++
	}
	blanks := i
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	switch c := after(s, i); {
	case c == '=' && after(s, min(i+1, len(s))) != '=', c == ':' && after(s, min(i+1, len(s))) != ':':
		what.sign = c
		i++
		if c == ':' && after(s, i) == '=' {
			i++
		}
	case i > blanks:
		what.sign = ' '
	default:
		return 0, 0
	}
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	lowName := lower(name)
	scheme, rest := s[i:], ""
	if blank := strings.IndexAny(scheme, " \t"); blank >= 0 {
		scheme, rest = scheme[:blank], scheme[blank+1:]
	}
	switch bare := lower(strings.Trim(scheme, `"'`)); {
	case slices.Contains([]string{"bearer", "basic", "digest", "token", "apikey", "negotiate"}, bare) && rest != "" && strings.HasSuffix(lowName, "authorization"):
		i += len(scheme) + 1 // RFC 9110, 11.6.2: the scheme, then the credentials.
		what = setting{name: "password", sign: '='}
	case lowName == "bearer" && what.sign == ' ' && !what.flag:
		if from, to = valueAt(s, i, &what); to-from >= 16 {
			return from, to
		}
		return 0, 0
	case what.sign == ' ' && !what.flag && setsVariable(s[:at]):
		what.sign = '='
	case what.sign == ' ' && !what.flag && strings.Contains(s, "machine") && strings.Contains(s, "login"): // A line of .netrc.
		what.sign = '='
		what.quoted = true
	}
	from, to = valueAt(s, i, &what)
	if from == to || !what.secret(s[from:to]) {
		return 0, 0
	}
	return from, to
}

// setsVariable reports whether a text ends in a command that takes a name and a
// value: setenv of csh, ENV of a Dockerfile.
func setsVariable(s string) bool {
	s = strings.TrimRight(s, " \t")
	return strings.HasSuffix(s, "setenv") || strings.HasSuffix(s, "ENV") && !isWord(before(s, len(s)-len("ENV")))
}

// valueAt returns where the value lies that begins at a place.
func valueAt(s string, at int, what *setting) (from, to int) {
	for at < len(s) && s[at] == '\\' {
		at++ // An escaped quote.
	}
	if q := after(s, at); q == '"' || q == '\'' {
		what.quoted = what.quoted || what.sign == '=' || what.flag
		for to = at + 1; to < len(s) && s[to] != q && s[to] != '\n'; to++ {
			switch {
			case s[to] != '\\':
				continue
			case before(s, at) == '\\' && after(s, to+1) == q:
				return at + 1, to // The quotes are escaped themselves.
			}
			to++
		}
		what.whole = what.first && strings.Trim(s[min(to, len(s)):], "\"', \t\r\n") == ""
		return at + 1, min(to, len(s))
	}
	for to = at; to < len(s) && s[to] != ' ' && s[to] != '\t' && s[to] != '\n' && s[to] != '\r' && s[to] != 0; to++ {
		if strings.IndexByte("&;,", s[to]) >= 0 && nextSetting(s[to+1:]) {
			break
		}
	}
	what.whole = what.first && (strings.TrimSpace(s[to:]) == "" || after(s, to) == 0) // NUL, in /proc/PID/environ.
	for to > at && strings.IndexByte(`"',;)]}\`, s[to-1]) >= 0 {
		to--
	}
	return at, to
}

// nextSetting reports whether a text begins with a name and an equals sign.
func nextSetting(s string) bool {
	name, _, ok := strings.Cut(s[:min(len(s), 64)], "=")
	return ok && name != "" && !strings.ContainsFunc(name, func(c rune) bool { return c >= 0x80 || !isWord(byte(c)) && c != '-' && c != '.' })
}

var (
	nameLine  = lazy.New(`^\s*(?:-\s+)?["']?name["']?\s*:\s*["']?([A-Za-z_][\w.-]*)["']?,?\s*$`)
	valueLine = lazy.New(`^(\s*(?:-\s+)?["']?value["']?\s*:\s*["']?)([^\n]*?)(["']?,?\s*)$`)
)

// namedOn returns the name on a line of a pod's environment, if it is that of a
// secret, whose value is on the next.
func namedOn(line string) string {
	if !strings.Contains(line, "name") {
		return ""
	}
	if m := nameLine.FindStringSubmatch(line); m != nil && secrecy(m[1]) != noSecret {
		return m[1]
	}
	return ""
}

// secretValueLine redacts the value on the line behind a name.
func secretValueLine(name, line string) string {
	m := valueLine.FindStringSubmatch(line)
	if m == nil || !SecretVariable(name, m[2]) {
		return line
	}
	return m[1] + redacted + m[3]
}
