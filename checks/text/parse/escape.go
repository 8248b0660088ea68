package parse

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// What programs for chat, browsers, terminals and collectors of logs do to the characters
// of a line is undone before anchors are looked for.

// mayBeEscaped reports whether a line of printable ASCII may hold what unescape undoes.
func mayBeEscaped(line []byte) bool {
	return bytes.IndexByte(line, '&') >= 0 || len(line) > 0 && line[len(line)-1] == '}' && bytes.Contains(line, openObject)
}

// openObject begins an object of JSON with a member.
var openObject = []byte(`{"`)

// unescape returns the lines that a line stands for: what an object of JSON holds may be several.
func unescape(line []byte) [][]byte {
	if said, ok := saidIn(line); ok {
		line = said
	}
	if bytes.IndexByte(line, '&') >= 0 && !bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("<?")) {
		line = []byte(htmlEntities.Replace(string(line)))
	}
	lines := bytes.Split(line, []byte("\n"))
	for i, l := range lines {
		if !plain(l) {
			lines[i] = clean(l)
		}
	}
	return lines
}

// htmlEntities are the characters that HTML escapes.
var htmlEntities = strings.NewReplacer(
	"&lt;", "<", "&gt;", ">", "&amp;", "&", "&quot;", `"`, "&apos;", "'", "&nbsp;", " ",
	"&#34;", `"`, "&#39;", "'", "&#x27;", "'", "&#x2F;", "/", "&#60;", "<", "&#62;", ">", "&#160;", " ",
)

// saidIn returns what a program said in a line of JSON as collectors write it: Docker's json-file ("log"), journalctl
// -o json ("MESSAGE"), Google Cloud ("textPayload"), and the loggers of most languages ("message", "msg"). Its time and
// its speaker go before it, as syslog has them.
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
	if fields := members["fields"]; fields != nil && members["message"] == nil { // As Rust's tracing-subscriber writes it.
		var inner map[string]json.RawMessage
		if json.Unmarshal(fields, &inner) == nil {
			members["message"] = inner["message"]
		}
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

// clean is a line as a terminal shows it: without control characters and sequences of them, and with the quotes,
// blanks and invisible characters of programs for chat as a terminal has them.
func clean(line []byte) []byte {
	if bytes.IndexByte(line, 0x1b) >= 0 {
		line = controlSequence.Get().ReplaceAll(line, nil)
	}
	return bytes.Map(shown, bytes.ReplaceAll(bytes.ToValidUTF8(line, []byte("\ufffd")), []byte("\u2026"), []byte("...")))
}

// controlSequence is one of a terminal (ECMA-48: CSI, OSC and those of two bytes).
var controlSequence = lazy.New(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])`)

// shown is the character that is shown of one; -1 for none.
func shown(c rune) rune {
	switch {
	case c == '\t':
		return c
	case c < ' ', c == 0x7f, c == 0xfeff, c >= 0x200b && c <= 0x200f, c == 0x2060:
		return -1
	case c == 0xa0, c >= 0x2000 && c <= 0x200a, c == 0x202f, c == 0x205f: // Blanks of several widths, and one that does not break.
		return ' '
	case c >= 0x2018 && c <= 0x201b:
		return '\''
	case c >= 0x201c && c <= 0x201f:
		return '"'
	}
	return c
}
