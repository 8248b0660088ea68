package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

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
	// Helper is the program that may know the password: gpudoctor runs none. It is empty where no file names one.
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

func (r *Repository) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if said, ok := errors.AsType[*transport.Error](err); ok {
		return r.refused(said)
	}
	// Without the address, to which the registry may have redirected.
	for at, ok := errors.AsType[*url.Error](err); ok; at, ok = errors.AsType[*url.Error](err) {
		err = at.Err
	}
	line := escape.Printable(query.ReplaceAllString(err.Error(), "?..."), 2*maxSaid)
	switch {
	case errors.Is(err, ErrAnswer), errors.Is(err, ErrSilent), errors.Is(err, ErrLogins):
		return err
	case isUnreachable(err):
		return fmt.Errorf("%w: %s", ErrConnect, line)
	}
	return fmt.Errorf("%w: %s", ErrAnswer, line)
}

// isUnreachable tells an error of the network from a wrong answer.
func isUnreachable(err error) bool {
	_, isNetwork := errors.AsType[net.Error](err)
	_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	return isNetwork || isCertificate || errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, io.EOF)
}

// refused is a refusal, in words: the registry's own, if there are any.
func (r *Repository) refused(said *transport.Error) error {
	status := fmt.Sprintf("%d %s", said.StatusCode, http.StatusText(said.StatusCode))
	if len(said.Errors) > 0 && said.Errors[0].Message != "" {
		status += " (" + escape.Printable(said.Errors[0].Message, maxSaid) + ")"
	}
	switch said.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		sent, helper := r.logins.found()
		return &DeniedError{Host: r.logins.ref.Host(), Status: status, Sent: sent, Helper: helper}
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusTooManyRequests:
		return ErrBusy
	}
	return fmt.Errorf("%w: %s", ErrAnswer, status)
}
