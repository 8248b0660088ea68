package parse

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// What programs for chat, browsers, terminals and collectors of logs do to the characters
// of a line is undone before anchors are looked for.

// mayBeEscaped reports whether a line may hold what unescape undoes.
func (s *splitter) mayBeEscaped(line []byte, plain bool) bool {
	return !plain || s.entities && bytes.IndexByte(line, '&') >= 0 || len(line) > 0 && line[len(line)-1] == '}' && bytes.Contains(line, openObject)
}

// openObject begins an object of JSON with a member.
var openObject = []byte(`{"`)

// unescape undoes what was done to the characters of a line. What an object of JSON holds
// may be several lines.
func (s *splitter) unescape(line []byte, plain bool) []byte {
	if said, ok := saidIn(line); ok {
		line = said
	}
	if !plain {
		line = appendUnescaped(nil, line)
	}
	if s.entities && !bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("<?")) {
		line = []byte(htmlEntities.Replace(string(line)))
	}
	return line
}

// htmlEntities are the characters that HTML escapes.
var htmlEntities = strings.NewReplacer(
	"&lt;", "<", "&gt;", ">", "&amp;", "&", "&quot;", `"`, "&apos;", "'", "&nbsp;", " ",
	"&#34;", `"`, "&#39;", "'", "&#x27;", "'", "&#x2F;", "/", "&#60;", "<", "&#62;", ">", "&#160;", " ",
)

// saidIn returns what a program said in a line of JSON as collectors write it: Docker's
// json-file ("log"), journalctl -o json ("MESSAGE"), Google Cloud ("textPayload"), and the
// loggers of most languages ("message", "msg"). Its time and its speaker go before it, as
// syslog has them.
func saidIn(line []byte) (said []byte, ok bool) {
	from := bytes.Index(line, openObject)
	if from < 0 || line[len(line)-1] != '}' || from > maxPrefixes*prefixBytes || prefixesLen(string(line[:from])) != from {
		return nil, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(line[from:], &members) != nil {
		return nil, false
	}
	text := func(keys ...string) (value string, ok bool) {
		for _, key := range keys {
			if json.Unmarshal(members[key], &value) == nil && members[key][0] == '"' {
				return value, true
			}
		}
		return "", false
	}
	message, ok := text("log", "message", "msg", "MESSAGE", "textPayload")
	if !ok || members["kind"] != nil {
		return nil, false
	}
	at, _ := text("time", "timestamp", "@timestamp", "ts")
	since, _ := text("__REALTIME_TIMESTAMP")
	if micros, err := strconv.ParseInt(since, 10, 64); err == nil {
		at = time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}
	head := string(line[:from])
	if t := timeForm.FindString(at); t != "" && strings.HasPrefix(at, t) && !strings.ContainsAny(at, "\r\n") {
		head += at + " "
		if host, ok := text("_HOSTNAME"); ok {
			program, _ := text("SYSLOG_IDENTIFIER", "_COMM")
			head += host + " " + cmp.Or(program, "unknown") + ": "
		}
	}
	return []byte(head + strings.TrimRight(message, "\r\n")), true
}

// appendUnescaped appends a line without terminal escapes, and with the quotes, blanks and
// invisible characters of programs for chat as a terminal has them.
func appendUnescaped(to, line []byte) []byte {
	for i := 0; i < len(line); {
		n, with := escaped(line[i:])
		if n == 0 {
			to = append(to, line[i])
			i++
			continue
		}
		to = append(to, with...)
		i += n
	}
	return to
}

// escaped is the length of what is written for something else at the beginning of a text, and
// what that is; 0 if the text begins with itself.
func escaped(text []byte) (n int, with string) {
	const generalPunctuation = 3 // Bytes of U+2000 to U+206F in UTF-8, e2 80 80 to e2 81 af.
	switch text[0] {
	case 0x1b:
		return escapeLength(text), ""
	case 0xc2:
		if len(text) > 1 && text[1] == 0xa0 { // U+00A0, a blank that does not break.
			return len("\u00a0"), " "
		}
	case 0xe2:
		if len(text) < generalPunctuation || text[1] != 0x80 && text[1] != 0x81 {
			return 0, ""
		}
		switch c := rune(0x2000) + rune(text[1]&1)<<6 + rune(text[2]&0x3f); {
		case c <= 0x200a || c == 0x202f || c == 0x205f: // Blanks of several widths.
			return generalPunctuation, " "
		case c <= 0x200f || c == 0x2060: // Invisible ones.
			return generalPunctuation, ""
		case c >= 0x2018 && c <= 0x201b:
			return generalPunctuation, "'"
		case c >= 0x201c && c <= 0x201f:
			return generalPunctuation, `"`
		case c == 0x2026:
			return generalPunctuation, "..."
		}
	case 0xef:
		if bytes.HasPrefix(text, []byte("\ufeff")) {
			return len("\ufeff"), ""
		}
	}
	return 0, ""
}

// escapeLength is the length of a terminal's control sequence (ECMA-48: CSI, OSC and the
// two-byte ones); 0 of an escape by itself.
func escapeLength(text []byte) int {
	in := func(i int, from, to byte) bool { return i < len(text) && text[i] >= from && text[i] <= to }
	switch i := 2; {
	case in(1, '[', '['):
		for in(i, '0', '?') {
			i++
		}
		for in(i, ' ', '/') {
			i++
		}
		if in(i, '@', '~') {
			return i + 1
		}
	case in(1, ']', ']'):
		for i < len(text) && text[i] != 0x07 && text[i] != 0x1b {
			i++
		}
		switch {
		case in(i, 0x07, 0x07):
			return i + 1
		case in(i, 0x1b, 0x1b) && in(i+1, '\\', '\\'):
			return i + 2
		}
		return i
	case in(1, '@', 'Z'), in(1, '\\', '_'):
		return i
	}
	return 0
}
