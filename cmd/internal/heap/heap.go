// Package heap prepares the memory that judging a machine takes.
package heap
