// Package twin puts the scripts of algorithms together with what calls them. It
// knows the form that algorithms.Scripted documents, and no Redis.
package twin

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Twin is the body of an algorithm's script and the widths that it mentions.
type Twin struct {
	Body   string
	Params int // p1 … pn
	Words  int // s1 … sn, and n1 … nn
}

// Decision is the body without what only answers need.
func (t Twin) Decision() string {
	body, _, _ := strings.Cut(t.Body, "\n-- answers\n")
	return body
}

// MaxWidth is the most params and the most words of state that a twin may have.
const MaxWidth = 9

var mention = regexp.MustCompile(`\b([psn])([1-9])\b`)

// Parse reads the widths off a body.
func Parse(body string) Twin {
	t := Twin{Body: strings.TrimSpace(body)}
	for _, m := range mention.FindAllStringSubmatch(withoutComments(body), -1) {
		n, _ := strconv.Atoi(m[2]) // one digit
		if m[1] == "p" {
			t.Params = max(t.Params, n)
		} else {
			t.Words = max(t.Words, n)
		}
	}
	return t
}

var comment = regexp.MustCompile(`--[^\n]*`)

func withoutComments(body string) string { return comment.ReplaceAllString(body, "") }

// Names is "s1, s2, s3" for ("s", 3).
func Names(letter string, n int) string {
	var names []string
	for i := range n {
		names = append(names, letter+strconv.Itoa(i+1))
	}
	return strings.Join(names, ", ")
}

// Answers are the locals that a body sets, beside the next state.
const Answers = "limited, limit, remaining, retry, reset"

// Function is the twin as a function of now, cost, age, the params and the
// state, that returns the answers and the next state.
func (t Twin) Function() string {
	in := strings.Join(nonEmpty("now, cost, age", Names("p", t.Params), Names("s", t.Words)), ", ")
	out := strings.Join(nonEmpty(Answers, Names("n", t.Words)), ", ")
	return fmt.Sprintf("function(%s)\nlocal %s\n%s\nreturn %s\nend", in, out, t.Body, out)
}

func nonEmpty(parts ...string) (some []string) {
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return some
}
