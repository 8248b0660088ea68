package data

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Topics returns the table of what people write about.
var Topics = reader("topics", func(t *TopicTable) {
	t.title, t.sentences, t.complains, t.denies = lazy.New(t.Title), lazy.New(t.Sentences), lazy.New("(?i)"+t.Complains), lazy.New("(?i)"+t.Denies)
	for _, list := range [][]Topic{t.Topics, t.Symptoms} {
		for i := range list {
			list[i].like = lazy.New("(?i)" + list[i].Like)
		}
	}
})

// TopicTable says by which words a text speaks of a cause, and tells of trouble.
type TopicTable struct {
	Person                              []string
	Title, Sentences, Complains, Denies string
	Topics, Symptoms                    []Topic

	title, sentences, complains, denies *lazy.Regexp
}

// Topic is a cause, and the words that speak of it.
type Topic struct {
	Cause, Like string

	like *lazy.Regexp
}

// apart takes words apart from what stands around lines.
var apart = strings.NewReplacer("\n", " ", "\r", " ", "*", " ", "\"", " ", ">", " ", "`", " ")

// ByPerson reports whether a text, or a line of one, has words by which a person writes.
func (t *TopicTable) ByPerson(text string) bool {
	text = " " + apart.Replace(text) + " "
	return slices.ContainsFunc(t.Person, func(words string) bool { return strings.Contains(text, words) })
}

// Titled reports whether a text begins with a title, as a person gives it one.
func (t *TopicTable) Titled(text string) bool { return t.title.MatchString(text) }

// Written reports whether a line is of several sentences.
func (t *TopicTable) Written(line string) bool { return t.sentences.MatchString(line) }

// Complain reports whether a line tells of trouble.
func (t *TopicTable) Complain(line string) bool {
	for _, o := range Experiments().OutcomesIn(line) {
		if o.Is == "failed" || o.Is == "hung" || o.Is == "unchanged" {
			return true
		}
	}
	return t.complains.MatchString(line)
}

// Deny reports whether a line says what the trouble is not.
func (t *TopicTable) Deny(line string) bool { return t.denies.MatchString(line) }

// In are the words of a line that speak of the cause; empty if there are none, or the line says that there is no such thing.
func (t *Topic) In(line string) string {
	at := t.like.Get().FindStringIndex(line)
	if at == nil || strings.HasSuffix(strings.ToLower(line[:at[0]]), "no ") {
		return ""
	}
	return line[at[0]:at[1]]
}
