package registry

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// The errors for which there is a hint.
var (
	ErrNotFound = errors.New("the registry does not have it")
	ErrBusy     = errors.New("the registry accepts no more requests for now (429 Too Many Requests)")
	ErrSilent   = errors.New("the registry sends nothing")
	ErrAnswer   = errors.New("the registry's answer is wrong")
	ErrConnect  = errors.New("the registry cannot be reached")
)

// DeniedError is a registry that does not give the image to this user.
type DeniedError struct {
	Host string
	// Status is what the registry says.
	Status string
	// Sent is true where a password was known.
	Sent bool
	// Helper is the program that may know the password: gpudoctor runs none. It is empty
	// where no file names one.
	Helper string
}

func (e *DeniedError) Error() string { return "the registry denies access: " + e.Status }

// Is makes errors.Is tell a denial whatever its status.
func (e *DeniedError) Is(target error) bool {
	_, ok := target.(*DeniedError)
	return ok
}

// maxSaid bounds what is shown of a registry's own words.
const maxSaid = 120

// query is the query of an address in a message: storage has signatures there.
var query = lazy.New(`\?[^\s"]*`)

// explain says in a line what failed.
func (r *Repository) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrSilent) {
		return fmt.Errorf("%w for %s", ErrSilent, r.silence)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if inFile, ok := errors.AsType[*LoginError](err); ok {
		return inFile
	}
	if said, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		return r.refused(said)
	}
	switch at, isNetwork := errors.AsType[*url.Error](err); {
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return r.denied("401 Unauthorized")
	case errors.Is(err, errRedirect):
		return fmt.Errorf("%w: %w", ErrAnswer, at.Err)
	case isNetwork && at.Timeout():
		return fmt.Errorf("%w for %s", ErrSilent, r.silence)
	case isNetwork && isUnreachable(at.Err):
		return fmt.Errorf("%w: %s", ErrConnect, escape.Printable(at.Err.Error(), 2*maxSaid))
	case isNetwork:
		err = at.Err // Without the address that the registry redirected to.
	}
	return fmt.Errorf("%w: %s", ErrAnswer, escape.Printable(query.ReplaceAllString(err.Error(), "?..."), 2*maxSaid))
}

// isUnreachable tells an error of the network from a wrong answer.
func isUnreachable(err error) bool {
	_, isNetwork := errors.AsType[net.Error](err)
	_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	return isNetwork || isCertificate || errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, io.EOF)
}

// maxRefusal bounds what is read of a refusal.
const maxRefusal = 8 << 10

// refusal is an answer with a status that is not that of success, and the registry's own
// words, if there are any.
func refusal(got *http.Response) error {
	e := &errcode.ErrorResponse{Method: got.Request.Method, URL: got.Request.URL, StatusCode: got.StatusCode}
	var said struct {
		Errors errcode.Errors `json:"errors"`
	}
	if err := json.NewDecoder(io.LimitReader(got.Body, maxRefusal)).Decode(&said); err == nil {
		e.Errors = said.Errors
	}
	return e
}

// refused is a refusal, in words.
func (r *Repository) refused(said *errcode.ErrorResponse) error {
	status := fmt.Sprintf("%d %s", said.StatusCode, http.StatusText(said.StatusCode))
	if len(said.Errors) > 0 && said.Errors[0].Message != "" {
		status += " (" + escape.Printable(said.Errors[0].Message, maxSaid) + ")"
	}
	switch said.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return r.denied(status)
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusTooManyRequests:
		return ErrBusy
	}
	return fmt.Errorf("%w: %s", ErrAnswer, status)
}

func (r *Repository) denied(status string) error {
	sent, helper := r.logins.found()
	return &DeniedError{Host: r.ref.Host(), Status: status, Sent: sent, Helper: helper}
}
