package redact

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// This file finds secrets: by the shapes that issuers publish for their tokens,
// by the words beside them, and as private keys.

// tokenShape is how the tokens of an issuer look. Every match holds the literal,
// which is looked for first.
type tokenShape struct {
	literal string
	shape   *lazy.Regexp
}

// tokenShapes are the forms of tokens that their issuers publish. Prefixes and
// alphabets are those that github.com/gitleaks/gitleaks (config/gitleaks.toml)
// and GitHub's list of supported secret scanning patterns name; lengths are lower
// bounds, so that a token that was cut is found as well.
var tokenShapes = []tokenShape{
	{"hf_", lazy.New(`\bhf_[A-Za-z0-9]{16,}`)},                                                                 // Hugging Face.
	{"api_org_", lazy.New(`\bapi_org_[A-Za-z0-9]{16,}`)},                                                       // Hugging Face, of an organisation.
	{"gh", lazy.New(`\bgh[pousr]_[A-Za-z0-9]{16,}`)},                                                           // GitHub.
	{"github_pat_", lazy.New(`\bgithub_pat_[A-Za-z0-9_]{16,}`)},                                                // GitHub.
	{"gl", lazy.New(`\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[A-Za-z0-9_.-]{16,}`)},            // GitLab.
	{"sk-", lazy.New(`\bsk-[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*`)},                                                // OpenAI, Anthropic, DeepSeek, OpenRouter.
	{"KIA", lazy.New(`\bAKIA[A-Z0-9]{12,}`)},                                                                   // AWS.
	{"SIA", lazy.New(`\bASIA[A-Z0-9]{12,}`)},                                                                   // AWS, for a session.
	{"ABIA", lazy.New(`\bABIA[A-Z0-9]{12,}`)},                                                                  // AWS.
	{"ACCA", lazy.New(`\bACCA[A-Z0-9]{12,}`)},                                                                  // AWS.
	{"bedrock-api-key-", lazy.New(`\bbedrock-api-key-[A-Za-z0-9+/=_-]+`)},                                      // AWS.
	{"xox", lazy.New(`\bxox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{8,}`)},                                         // Slack.
	{"xapp-", lazy.New(`\bxapp-[A-Za-z0-9-]{8,}`)},                                                             // Slack.
	{"hooks.slack.com/", lazy.New(`hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]+`)},       // Slack.
	{"npm_", lazy.New(`\bnpm_[A-Za-z0-9]{16,}`)},                                                               // npm.
	{"pypi-", lazy.New(`\bpypi-[A-Za-z0-9_-]{16,}`)},                                                           // PyPI.
	{"rubygems_", lazy.New(`\brubygems_[a-f0-9]{16,}`)},                                                        // RubyGems.
	{"dckr_", lazy.New(`\bdckr_[a-z]{3}_[A-Za-z0-9_-]{16,}`)},                                                  // Docker.
	{"AIza", lazy.New(`\bAIza[A-Za-z0-9_-]{16,}`)},                                                             // Google.
	{"ya29.", lazy.New(`\bya29\.[A-Za-z0-9_-]{8,}`)},                                                           // Google, OAuth.
	{"GOCSPX-", lazy.New(`\bGOCSPX-[A-Za-z0-9_-]{8,}`)},                                                        // Google, OAuth.
	{"Q~", lazy.New(`[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{16,}`)},                                          // Microsoft Entra.
	{"sig=", lazy.New(`\bsig=[A-Za-z0-9%+/=_-]{16,}`)},                                                         // Azure, shared access signature.
	{"nvapi-", lazy.New(`\bnvapi-[A-Za-z0-9_-]{8,}`)},                                                          // NVIDIA.
	{"eyJ", lazy.New(`\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*`)},                                           // JSON web tokens (RFC 7519): base64 of {".
	{"_live_", lazy.New(`\b[a-z]{2,5}_live_[A-Za-z0-9]{8,}`)},                                                  // Stripe and its like.
	{"_test_", lazy.New(`\b(?:sk|rk|pk|whsec)_test_[A-Za-z0-9]{8,}`)},                                          // Stripe.
	{"SG.", lazy.New(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`)},                                          // SendGrid.
	{"shp", lazy.New(`\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}`)},                                                 // Shopify.
	{"_v1_", lazy.New(`\bdo[opr]_v1_[a-f0-9]{16,}`)},                                                           // DigitalOcean.
	{"dapi", lazy.New(`\bdapi[a-f0-9]{16,}`)},                                                                  // Databricks.
	{"hv", lazy.New(`\bhv[sbr]\.[A-Za-z0-9_-]{16,}`)},                                                          // HashiCorp Vault.
	{"tskey-", lazy.New(`\btskey-[a-z]+-[A-Za-z0-9-]{8,}`)},                                                    // Tailscale.
	{"gsk_", lazy.New(`\bgsk_[A-Za-z0-9]{16,}`)},                                                               // Groq.
	{"r8_", lazy.New(`\br8_[A-Za-z0-9]{16,}`)},                                                                 // Replicate.
	{"pplx-", lazy.New(`\bpplx-[A-Za-z0-9]{16,}`)},                                                             // Perplexity.
	{"xai-", lazy.New(`\bxai-[A-Za-z0-9]{16,}`)},                                                               // xAI.
	{"wandb_", lazy.New(`\bwandb_v1_[A-Za-z0-9_]{16,}`)},                                                       // Weights & Biases.
	{"glsa_", lazy.New(`\bglsa_[A-Za-z0-9_]{16,}`)},                                                            // Grafana.
	{"glc_", lazy.New(`\bglc_[A-Za-z0-9+/=]{16,}`)},                                                            // Grafana Cloud.
	{"sntry", lazy.New(`\bsntry[su]_[A-Za-z0-9+/=_-]{16,}`)},                                                   // Sentry.
	{"ATATT", lazy.New(`\bATATT3[A-Za-z0-9_=-]{16,}`)},                                                         // Atlassian.
	{"NRAK-", lazy.New(`\bNRAK-[A-Z0-9]{16,}`)},                                                                // New Relic.
	{"PMAK-", lazy.New(`\bPMAK-[a-f0-9-]{16,}`)},                                                               // Postman.
	{"lin_api_", lazy.New(`\blin_api_[A-Za-z0-9]{16,}`)},                                                       // Linear.
	{"AGE-SECRET-KEY-", lazy.New(`\bAGE-SECRET-KEY-1[A-Z0-9]{16,}`)},                                           // age.
	{"dp.", lazy.New(`\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{16,}`)},                                 // Doppler.
	{"secret_", lazy.New(`\bsecret_[A-Za-z0-9]{32,}`)},                                                         // Notion.
	{"AccountKey", lazy.New(`\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=[A-Za-z0-9%+/=&_-]{16,}`)}, // Azure, connection strings.
}

// tokens replaces what looks like a token.
func tokens(s string) string {
	const shortest = 12 // Characters of the shortest that is found.
	if len(s) < shortest {
		return s
	}
	for _, t := range tokenShapes {
		if !strings.Contains(s, t.literal) {
			continue
		}
		s = replace(s, t.shape, func(s string, from, to int) string {
			match := s[from:to]
			switch {
			case before(s, from) == '-' && t.literal == "sk-": // A part of a longer name.
				return match
			case t.literal == "sk-" && len(match) < 20:
				return match
			case strings.HasSuffix(t.literal, "=") || t.literal == "AccountKey":
				return match[:strings.IndexByte(match, '=')+1] + redacted
			}
			return redacted
		})
	}
	return s
}

// pemBlock is a private key as PEM (RFC 7468), OpenSSH and PGP write them: its
// first line and all that can be of its content, with the line breaks as they are
// or as escapes.
var pemBlock = lazy.New(`-----BEGIN ([A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----(?:[A-Za-z0-9+/=\s\\]|[A-Za-z-]+: [^\n\\]*)*(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)?`)

// privateKeys replaces private keys.
func privateKeys(s string) string {
	if !strings.Contains(s, "PRIVATE KEY") {
		return s
	}
	return replace(s, pemBlock, func(s string, from, to int) string {
		match := s[from:to]
		end := ""
		if to == len(s) && strings.HasSuffix(match, "\n") {
			end = "\n"
		}
		// There are as many lines as before: places are given by their numbers.
		lines := strings.Repeat("\n"+redacted, strings.Count(strings.TrimSuffix(match, end), "\n"))
		return "-----BEGIN PRIVATE KEY----- " + redacted + " -----END PRIVATE KEY-----" + lines + end
	})
}

// secretHints are parts of all words that make the value beside them a secret.
var secretHints = []string{"pass", "pwd", "secret", "token", "auth", "bearer", "cred", "login", "key", "cookie", "signature"}

// hasHint reports whether a text in lower case holds one.
func hasHint(low string) bool {
	return slices.ContainsFunc(secretHints, func(hint string) bool { return strings.Contains(low, hint) })
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

// Words of names, in lower case.
var (
	secretParts = []string{"password", "passwd", "passphrase", "passcode", "secret", "apikey", "accesskey", "secretkey", "privatekey", "credential"}
	secretWords = []string{"pwd", "creds", "cred", "bearer", "token", "authtoken", "accesstoken", "hftoken", "psk"}
	doubtful    = []string{"pass", "auth", "login", "key", "keys", "authorization", "cookie", "signature", "authkey", "tokens"}
	// keyKinds stand before "key" where it is a secret.
	keyKinds = []string{"api", "access", "secret", "private", "account", "encryption", "license", "signing", "ssh", "auth", "shared", "client", "service", "storage", "deploy", "session", "subscription", "master", "ngc", "wandb"}
	// noSecretAfter follow a word of the lists where it says something else:
	// pass-through, token count, auth type, key size.
	noSecretAfter = []string{
		"through", "thru", "rate", "ed", "es", "count", "counts", "limit", "length", "len", "size", "sizes", "num", "per", "budget", "type", "types", "mode", "method",
		"id", "ids", "index", "parallel", "parallelism", "embedding", "embeddings", "file", "files", "path", "dir", "env", "name", "names", "ref", "plugin", "provider", "timeout",
		"interval", "ttl", "sock", "socket", "host", "server", "url", "uri", "port", "header", "bits", "mpool", "cache", "range", "ranges", "space", "required", "enabled", "enable", "disable", "disabled", "protocol", "fail", "failures", "ok", "error", "errors",
	}
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
		if slices.Contains(noSecretAfter, next) {
			continue
		}
		switch {
		case slices.ContainsFunc(secretParts, func(p string) bool { return strings.Contains(w, p) }),
			slices.Contains(secretWords, w), strings.HasSuffix(w, "token"),
			(w == "key" || w == "keys") && i > 0 && slices.Contains(keyKinds, words[i-1]):
			return isSecret
		case slices.Contains(doubtful, w), strings.HasSuffix(w, "key"):
			found = mayBeSecret
		}
	}
	return found
}

// harmless are values of settings whose names sound secret.
var harmless = []string{
	"", "y", "n", "yes", "no", "on", "off", "true", "false", "auto", "try", Withheld, redacted, "none", "null", "nil", "nan", "unset", "undefined", "undef", "default",
	"any", "all", "native", "munge", "slurm", "jwt", "kerberos", "ldap", "pam", "psk", "basic", "simple", "anonymous", "host", "user", "file", "env", "required", "optional", "enabled", "disabled",
	"enable", "disable", "dont", "force", "warn", "ignore", "prefer", "allow", "deny", "local", "remote", "system",
}

// verdicts follow a word such as "password:" where a program says how it went.
var verdicts = []string{
	"failed", "failure", "fail", "incorrect", "wrong", "invalid", "expired", "missing", "denied", "accepted", "rejected", "ok", "okay", "success", "successful", "succeeded", "error", "timeout", "timed",
	"is", "was", "are", "not", "no", "for", "of", "from", "to", "in", "at", "on", "the", "a", "an", "and", "or", "with", "by", "must", "should", "cannot", "could", "unable", "unexpected", "unknown", "unsupported",
	"please", "see", "use", "using", "set", "given", "found", "required", "expected", "permission", "connection", "access",
}

// plainSetting reports whether a value is a number of a few digits or a switch,
// a reference to another variable or a place holder.
func plainSetting(value string) bool {
	low := lower(strings.TrimSpace(value))
	if slices.Contains(harmless, low) || strings.HasPrefix(low, "$") || strings.HasPrefix(low, "<") || strings.HasPrefix(low, "%") && (strings.HasSuffix(low, "%") || len(low) == 2) ||
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
	case s.sign != '=' && slices.Contains(verdicts, strings.Trim(low, ".,;:!")):
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
	s = tokens(s)
	if strings.Contains(s, "@") && strings.Contains(s, "://") {
		s = userinfo.ReplaceAllString(s, "://"+redacted+"@")
	}
	s = shortFlags(s)
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

// userinfo is the user and the password of a URL (RFC 3986, 3.2.1); a password
// may hold an @ that is not escaped.
var userinfo = lazy.New(`://[^/\s"'<>]+@`)

// passwordFlags are flags of one letter that passwords follow, by program.
var passwordFlags = []tokenShape{
	{"sshpass", lazy.New(`\bsshpass\s+-p\s*["']?([^\s"']+)`)},
	{"curl", lazy.New(`\bcurl\s(?:[^;|&\n]*?\s)??(?:-u|--user|--proxy-user)[\s=]*["']?([^\s"']+)`)},
	{"wget", lazy.New(`\bwget\s(?:[^;|&\n]*?\s)??(?:--user|--proxy-user)[\s=]*["']?([^\s"']+)`)},
	{"login", lazy.New(`\b(?:docker|podman|nerdctl|helm)\s+(?:registry\s+)?login\s(?:[^;|&\n]*?\s)??-p[\s=]*["']?([^\s"']+)`)},
	{"mysql", lazy.New(`\bmysql\w*\s(?:[^;|&\n]*?\s)??-p["']?([^\s"']+)`)},
}

func shortFlags(s string) string {
	for _, f := range passwordFlags {
		if !strings.Contains(s, f.literal) {
			continue
		}
		var out strings.Builder
		last := 0
		for _, m := range f.shape.FindAllStringSubmatchIndex(s, -1) {
			if value := s[m[2]:m[3]]; !plainSetting(value) {
				out.WriteString(s[last:m[2]] + redacted)
				last = m[3]
			}
		}
		s = out.String() + s[last:]
	}
	return s
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
